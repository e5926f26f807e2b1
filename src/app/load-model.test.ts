import { expect, it } from "vitest";
import { loadConfig } from "../config/load.ts";
import { replyParsers } from "./load-model.ts";

const hermes = "{{ '<tool_call>' }}";
const parsers = (flags: Record<string, unknown>, template: string | null = hermes) =>
  replyParsers(loadConfig({ flags, env: {} }), template);

it("parses no tool calls by default", () => {
  expect(parsers({})).toEqual({ reasoning: null, toolFormat: null });
});

it("finds the format in the chat template, unless it is named", () => {
  expect(parsers({ enableAutoToolChoice: true }).toolFormat).toBe("hermes");
  expect(parsers({ enableAutoToolChoice: true, toolCallParser: "auto" }).toolFormat).toBe("hermes");
  expect(parsers({ enableAutoToolChoice: true, toolCallParser: "mistral" }).toolFormat).toBe("mistral");
});

it("says what to do where neither works", () => {
  expect(() => parsers({ enableAutoToolChoice: true }, "{{ messages }}")).toThrow(/choose with --tool-call-parser/);
  expect(() => parsers({ toolCallParser: "hermes" })).toThrow(/without --enable-auto-tool-choice: give both/);
});
