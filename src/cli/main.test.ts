import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { fileFault } from "./main.ts";

const folder = mkdtempSync(join(tmpdir(), "file-fault-"));
const file = join(folder, "file");
writeFileSync(file, "");

function thrown(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

it("says what to do about a file or folder", () => {
  const fault = fileFault(thrown(() => readdirSync(file)));
  expect(fault).toBe(`ENOTDIR: not a directory, scandir '${file}': give a folder`);
  expect(fileFault(thrown(() => readFileSync(folder)))).toMatch(/^EISDIR: .*: give a file$/);
  const full = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC", syscall: "write" });
  expect(fileFault(full)).toBe(`${full.message}: free some space, or choose another place`);
});

it("leaves other faults with their stacks", () => {
  expect(fileFault(thrown(() => readFileSync(join(folder, "missing"))))).toBeNull();
  expect(fileFault(new TypeError("x is not a function"))).toBeNull();
  expect(fileFault("text")).toBeNull();
});
