import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { snippet } from "./snippets.ts";

const BODY = {
  model: "m",
  messages: [{ role: "user", content: 'It\'s "fine"\n\\d $HOME `x`' }],
  top_k: 5,
  stream: true,
  stream_options: { include_usage: true },
  logprobs: true,
};
const ORIGIN = "http://127.0.0.1:8000";

it("is a command that a shell passes on as it is", () => {
  const text = snippet("curl", BODY, ORIGIN);
  expect(text).not.toContain("fw_");
  const printed = execFileSync("sh", ["-c", `curl() { for last; do :; done; printf %s "$last"; }\n${text}`], {
    encoding: "utf8",
  });
  expect(JSON.parse(printed)).toEqual(BODY);
});

it("is a program in TypeScript and in Python, without streaming", () => {
  const typeScript = snippet("TypeScript", BODY, ORIGIN);
  expect(typeScript).toContain('baseURL: "http://127.0.0.1:8000/v1"');
  expect(typeScript).not.toContain("stream");
  const python = snippet("Python", BODY, ORIGIN);
  expect(python).toContain("logprobs=True,");
  expect(python).toContain('extra_body={"top_k": 5},');
  expect(python).not.toContain("stream");
});
