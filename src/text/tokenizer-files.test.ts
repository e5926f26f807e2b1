import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { needing, POSIX } from "../../test/support/needs.ts";
import { readTextFiles, TextFilesError } from "./tokenizer-files.ts";

const folder = mkdtempSync(join(tmpdir(), "text-files-"));

function withoutFile(name: string): string {
  const copy = join(folder, name);
  cpSync(fileURLToPath(new URL("../../test/fixtures/llama", import.meta.url)), copy, { recursive: true });
  rmSync(join(copy, name), { force: true });
  return copy;
}

needing(POSIX).itEach(
  ["tokenizer.json", "special_tokens_map.json", "chat_template.jinja"],
  "a pipe as %s is refused, not waited for",
  async (name) => {
    const copy = withoutFile(name);
    execFileSync("mkfifo", [join(copy, name)]);
    await expect(readTextFiles(copy)).rejects.toThrow(`${name} cannot be read: not a regular file`);
  },
);

test("a folder in place of a file is an error that names it", async () => {
  const copy = withoutFile("tokenizer_config.json");
  mkdirSync(join(copy, "tokenizer_config.json"));
  await expect(readTextFiles(copy)).rejects.toThrow(TextFilesError);
});
