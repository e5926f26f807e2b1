import { expect, it } from "vitest";
import { fieldsOf, fromLevel, type LogLine, withLines } from "./log-lines.ts";

const line = (message: string, level: LogLine["level"] = "info"): LogLine => ({ at: "", level, message });

it("keeps the newest thousand lines", () => {
  const many = Array.from({ length: 700 }, (_, i) => line(String(i)));
  const kept = withLines(withLines([], many), many);
  expect([kept.length, kept[0]!.message, kept.at(-1)!.message]).toEqual([1000, "400", "699"]);
});

it("shows lines of a level and above", () => {
  const lines = [line("a", "debug"), line("b"), line("c", "warn"), line("d", "error")];
  expect(fromLevel(lines, "warn").map(({ message }) => message)).toEqual(["c", "d"]);
  expect(fromLevel(lines, "debug")).toHaveLength(4);
});

it("writes further fields behind the message", () => {
  expect(fieldsOf({ ...line("started"), port: 8000, host: "::1", tags: ["x"] })).toBe('port=8000 host=::1 tags=["x"]');
  expect(fieldsOf(line("started"))).toBe("");
});
