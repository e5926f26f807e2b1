import { afterAll, describe, expect, test } from "vitest";
import { chatMessages } from "../../api/generation/messages.ts";
import type { RenderInput } from "../chat-template.ts";
import { TemplateError } from "../prompt-error.ts";
import { TemplateSandbox } from "./sandbox.ts";

const input: RenderInput = {
  messages: [{ role: "user", texts: ["hi"] }],
  tools: null,
  documents: null,
  addGenerationPrompt: true,
  continueFinalMessage: false,
  reasoningEffort: null,
  specialTokens: { eos_token: "</s>" },
  kwargs: {},
};

const sandbox = new TemplateSandbox({ timeLimitMs: 60_000 });
afterAll(() => sandbox.close());

test("renders what the same template renders inside the service", async () => {
  expect(await sandbox.render("{{ messages[0].content }}{{ eos_token }}", input)).toBe("hi</s>");
  const call = { function: { name: "f", arguments: '{"id": 1234567890123456789, "t": 1.0}' } };
  const messages = chatMessages([{ role: "assistant", tool_calls: [call] }]);
  const source = "{{ messages[0].tool_calls[0].function.arguments | tojson }}";
  expect(await sandbox.render(source, { ...input, messages })).toBe(call.function.arguments);
});

test("jobs are answered in order, each with its own result", async () => {
  const jobs = ["a", "b", "c"].map((letter) => sandbox.render(`{{ "${letter}" }}`, input));
  expect(await Promise.all(jobs)).toEqual(["a", "b", "c"]);
});

test("errors come back unchanged", async () => {
  await expect(sandbox.render("{{ raise_exception('no') }}", input)).rejects.toThrow(new TemplateError("no"));
  await expect(sandbox.render("{% if %}", input)).rejects.toThrow(/cannot be parsed/);
  const unseen = { ...input, addGenerationPrompt: false, continueFinalMessage: true };
  await expect(sandbox.render("x", unseen)).rejects.toMatchObject({ code: "invalid_continuation", param: "messages" });
});

describe("a hostile template harms nothing else", () => {
  const strict = new TemplateSandbox({ timeLimitMs: 1_500 });
  afterAll(() => strict.close());
  const forever =
    "{% macro f(n) %}{% for i in range(100000) %}{{ i }}{% endfor %}{% endmacro %}{% for i in range(100000) %}{{ f(i) }}{% endfor %}";
  const doubling =
    "{% set f = 'a'.replace %}{% set ns = namespace(x='aa') %}{% for i in range(60) %}{% set g = ns.x.replace %}";
  test.each([
    ["endless work", forever],
    ["text multiplied behind the checks", `${doubling}{% set ns.x = g('a', 'a' ~ ns.x) %}{% endfor %}`],
    [
      "lists of lists",
      "{% set ns = namespace(x=[1]) %}{% for i in range(100000) %}{% set ns.x = [ns.x, ns.x, range(100000)] %}{% endfor %}",
    ],
    ["endless recursion", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"],
  ])("%s", async (_name, source) => {
    await expect(strict.render(source, input)).rejects.toBeInstanceOf(TemplateError);
    expect(await strict.render("{{ 'alive' }}", input)).toBe("alive");
  });

  test("long runs of spaces cost no more than their length", async () => {
    expect(await sandbox.render(`{% if not x %}${" ".repeat(250_000)}{%- endif %}`, input)).toBe("");
  });

  test("time is limited", async () => {
    const quick = new TemplateSandbox({ timeLimitMs: 30 });
    await expect(quick.render(forever, input)).rejects.toThrow(/took longer than 0.03 s/);
    quick.close();
  });

  test("a template that is too long is refused without parsing", async () => {
    await expect(sandbox.render("x".repeat(300_000), input)).rejects.toThrow(/262144/);
  });
});

test("too many waiting jobs are refused", async () => {
  const small = new TemplateSandbox({ maxWaiting: 1 });
  const jobs = [1, 2, 3].map((n) => small.render(`{{ ${n} }}`, input));
  const settled = await Promise.allSettled(jobs);
  expect(settled.map((result) => result.status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
  expect(settled[2]).toMatchObject({ reason: { code: "template_busy" } });
  small.close();
});

test("a client can have only a few jobs, and does not hold up other clients", async () => {
  const shared = new TemplateSandbox({ maxPerClient: 1 });
  const hostile = Array.from({ length: 10 }, () => shared.render("{{ 1 }}", input, "hostile"));
  const honest = shared.render("{{ 'honest' }}", input, "honest");
  const settled = await Promise.allSettled(hostile);
  expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
  expect(settled[2]).toMatchObject({ reason: { code: "template_busy", param: "chat_template" } });
  expect(await honest).toBe("honest");
  expect(await shared.render("{{ 2 }}", input, "hostile")).toBe("2");
  shared.close();
});

test("clients take turns, however many jobs one of them has", async () => {
  const shared = new TemplateSandbox({ maxPerClient: 20 });
  const ended: string[] = [];
  const render = (client: string) => shared.render("{{ 1 }}", input, client).then(() => ended.push(client));
  await Promise.all([...Array.from({ length: 10 }, () => render("hostile")), render("honest")]);
  expect(ended.indexOf("honest")).toBe(1);
  shared.close();
});

test("of several processes, one client leaves one to the others", async () => {
  const shared = new TemplateSandbox({ isTrusted: true, processes: 2, timeLimitMs: 30_000 });
  const slow = "{% for a in range(2000) %}{% for b in range(500) %}{% endfor %}{% endfor %}";
  const ended: string[] = [];
  const render = (source: string, client: string) =>
    shared.render(source, input, client).then(() => ended.push(client));
  await Promise.all([render(slow, "hostile"), render(slow, "hostile"), render("{{ 1 }}", "honest")]);
  expect(ended[0]).toBe("honest");
  shared.close();
});

test("a trusted template has no limit on its work, only on its time", async () => {
  const trusted = new TemplateSandbox({ isTrusted: true, timeLimitMs: 30_000 });
  const source = "{% for a in range(2000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}{{ 'done' }}";
  await expect(sandbox.render(source, input)).rejects.toBeInstanceOf(TemplateError);
  expect(await trusted.render(source, input)).toBe("done");
  trusted.close();
});

test("closing answers everyone", async () => {
  const closing = new TemplateSandbox();
  const jobs = [1, 2].map((n) => closing.render(`{{ ${n} }}`, input));
  closing.close();
  const settled = await Promise.allSettled([...jobs, closing.render("x", input)]);
  expect(settled.every((result) => result.status === "rejected")).toBe(true);
});
