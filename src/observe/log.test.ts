import { expect, it } from "vitest";
import { createLog } from "./log.ts";

function lines(format: "text" | "json") {
  const out: string[] = [];
  const log = createLog({ level: "info", format, write: (line) => out.push(line), now: () => new Date(0) });
  return { log, out };
}

it("writes one text line per message, even if it contains a line break", () => {
  const { log, out } = lines("text");
  log.debug("hidden");
  log.info("request\nforged", { id: "a b", status: 200, route: "/v1/models" });
  expect(out).toEqual(['1970-01-01T00:00:00.000Z info  request forged id="a b" status=200 route=/v1/models\n']);
});

it.each(["text", "json"] as const)("escapes terminal control characters in %s lines", (format) => {
  const { log, out } = lines(format);
  log.info("started\u001b[2J", { name: "a\u001b[31m", fields: ["\u009b2J", "\u202egnp.exe", "\u2028", "é"] });
  expect(out[0]).toMatch(/^[^\p{Cc}\u2028\u202e]+\n$/u);
  expect(out[0]).toContain('["\\u009b2J","\\u202egnp.exe","\\u2028","é"]');
});

it("writes errors with their causes in JSON lines", () => {
  const { log, out } = lines("json");
  log.error("failed", { error: new Error("outer", { cause: new Error("inner") }), seed: 5n });
  const line = JSON.parse(out[0]!);
  expect(line).toMatchObject({ level: "error", message: "failed", seed: "5" });
  expect(line.error).toMatch(/outer[\s\S]*caused by: Error: inner/);
});
