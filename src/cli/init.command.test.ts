import { existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { OperatorError } from "../errors/faults.ts";
import { makeProject } from "./init.command.ts";

const scratch = mkdtempSync(join(tmpdir(), "init-"));

it("refuses a place where no folder can be, in the operator's words", () => {
  const file = join(scratch, "taken");
  writeFileSync(file, "");
  expect(() => makeProject(file)).toThrow(new OperatorError(`${file} is a file: choose a new folder`));
  const inside = join(file, "agent");
  const attempt = () => makeProject(inside);
  expect(attempt).toThrow(OperatorError);
  expect(attempt).toThrow(`cannot make ${inside}: E`);
});

it("leaves nothing behind when it breaks off in the middle", () => {
  const template = join(scratch, "template");
  mkdirSync(template);
  writeFileSync(join(template, "gitignore"), "");
  writeFileSync(join(template, "package.json"), "{}");
  const added = join(scratch, "added");
  expect(() => makeProject(added, template)).toThrow(OperatorError);
  expect(existsSync(added)).toBe(false);
  const empty = join(scratch, "empty");
  mkdirSync(empty);
  expect(() => makeProject(empty, template)).toThrow(OperatorError);
  expect(readdirSync(empty)).toEqual([]);
});
