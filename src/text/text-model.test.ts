import { existsSync, readFileSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeEach, expect, test } from "vitest";
import { ByteTokenizer } from "../../test/support/byte-tokenizer.ts";
import { need, needing } from "../../test/support/needs.ts";
import { ChatTemplate } from "./chat-template.ts";
import { chatPrompt } from "./prompt.ts";
import { loadTextModel, TextModel } from "./text-model.ts";
import { TextFilesError } from "./tokenizer-files.ts";

const fixture = fileURLToPath(new URL("../../test/fixtures/llama", import.meta.url));
const messages = [{ role: "user", texts: ["hi"] }];
const folders: string[] = [];
let folder = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "text-model-"));
  folders.push(folder);
  await copyFile(join(fixture, "tokenizer.json"), join(folder, "tokenizer.json"));
});

afterAll(async () => {
  for (const path of folders) await rm(path, { recursive: true });
});

const put = (name: string, content: string): Promise<void> => writeFile(join(folder, name), content);
const textOf = async (chatTemplate?: string): Promise<string> => {
  const model = await loadTextModel(folder);
  const prompt = await chatPrompt(model, { messages, chatTemplate: chatTemplate ?? null }, null);
  model.close();
  return prompt.text;
};

test("a fixture checkpoint: tokenizer, special tokens and template", async () => {
  const model = await loadTextModel(fixture);
  expect(model.tokenizer.eosTokenId).toBe(2);
  expect(model.specialTokens).toEqual({ bos_token: "<s>", eos_token: "</s>", pad_token: "<pad>" });
  const prompt = await chatPrompt(model, { messages }, null);
  expect(prompt.text).toBe("<s>user:hi</s><s>assistant:");
  expect(prompt.tokenIds).toEqual([1, ...Buffer.from("user:hi"), 2, 1, ...Buffer.from("assistant:")]);
});

test("a long conversation is rendered away from the main thread, with the same text", async () => {
  // Quadratic: a second and more of work.
  const source =
    "{% for m in messages %}{% for o in messages %}{% set x = o.content ~ m.content %}{% endfor %}{{ m.content }};{% endfor %}";
  await put("chat_template.jinja", source);
  const model = await loadTextModel(folder);
  const long = Array.from({ length: 700 }, (_, i) => ({ role: "user", texts: [`${i}`] }));
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const { text } = await chatPrompt(model, { messages: long }, null);
  clearInterval(timer);
  expect(turns).toBeGreaterThan(10);
  const here = new ChatTemplate(source).render({
    messages: long,
    tools: null,
    documents: null,
    addGenerationPrompt: true,
    continueFinalMessage: false,
    reasoningEffort: null,
    specialTokens: {},
    kwargs: {},
  });
  expect(text).toBe(here);
  await model.close();
});

test("templates come from a string, a named list, files and folders; files win", async () => {
  await put("tokenizer_config.json", JSON.stringify({ chat_template: "from config" }));
  expect(await textOf()).toBe("from config");
  const named = [
    { name: "default", template: "named" },
    { name: "rag", template: "rag" },
  ];
  await put("tokenizer_config.json", JSON.stringify({ chat_template: named }));
  expect([await textOf(), await textOf("rag")]).toEqual(["named", "rag"]);
  await put("chat_template.jinja", "from file");
  expect([await textOf(), await textOf("rag")]).toEqual(["from file", "rag"]);
  await mkdir(join(folder, "additional_chat_templates"));
  await put("additional_chat_templates/extra.jinja", "extra");
  expect(await textOf("extra")).toBe("extra");
});

test("the operator's template replaces the model's, the request's replaces both", async () => {
  await put("tokenizer_config.json", JSON.stringify({ chat_template: "model" }));
  const model = await loadTextModel(folder, { chatTemplate: "operator" });
  expect((await chatPrompt(model, { messages }, null)).text).toBe("operator");
  expect((await chatPrompt(model, { messages, chatTemplate: "{{ 'request' }}" }, null)).text).toBe("request");
  model.close();
});

test("broken and missing files are named", async () => {
  await put("tokenizer_config.json", "{");
  await expect(loadTextModel(folder)).rejects.toThrow(/tokenizer_config\.json is not valid JSON/);
  await put("tokenizer_config.json", "[]");
  await expect(loadTextModel(folder)).rejects.toThrow(TextFilesError);
  await rm(join(folder, "tokenizer.json"));
  await expect(loadTextModel(folder)).rejects.toThrow(/no tokenizer\.json/);
});

const realModel = process.env.FLYWHEEL_TEST_MODEL;

needing(
  need(
    "FLYWHEEL_TEST_MODEL, a folder with reference.json",
    Boolean(realModel) && existsSync(`${realModel}/reference.json`),
  ),
).it("a real checkpoint: messages to prompt ids", async () => {
  const model = await loadTextModel(realModel!);
  for (const { prompt, input_ids } of JSON.parse(readFileSync(`${realModel}/reference.json`, "utf8")).cases) {
    const question = /<\|im_start\|>user\n(.*)<\|im_end\|>/s.exec(prompt)![1];
    const made = await chatPrompt(model, { messages: [{ role: "user", texts: [question!] }] }, null);
    expect([made.text, made.tokenIds]).toEqual([prompt, input_ids]);
  }
  model.close();
});

test("an operator can name one of the model's templates, and defaultTemplate is its text", () => {
  const chatTemplates = new Map([
    ["default", "plain"],
    ["thinking", "<think></think>"],
  ]);
  const parts = { tokenizer: new ByteTokenizer(), specialTokens: {}, longestToken: 4, chatTemplates };
  expect(new TextModel(parts).defaultTemplate).toBe("plain");
  expect(new TextModel({ ...parts, chatTemplate: "thinking" }).defaultTemplate).toBe("<think></think>");
  expect(new TextModel({ ...parts, chatTemplates: new Map() }).defaultTemplate).toBeNull();
});
