// Compiles the fakes to JavaScript in a temporary folder, for worker threads.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export interface CompiledFakes {
  /** URL of the compiled form of a file in this folder. */
  url(file: string): string;
  remove(): void;
}

export function compileFakes(...files: string[]): CompiledFakes {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const out = mkdtempSync(join(tmpdir(), "flywheel-fakes-"));
  const config = join(out, "tsconfig.json");
  const compilerOptions = { noEmit: false, outDir: out, rootDir: root, noCheck: true, types: [] };
  const sources = files.map((file) => join(root, "test/support", file));
  writeFileSync(
    config,
    JSON.stringify({ extends: join(root, "tsconfig.json"), compilerOptions, files: sources, include: [] }),
  );
  writeFileSync(join(out, "package.json"), JSON.stringify({ type: "module" }));
  execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", config], { stdio: "pipe" });
  return {
    url: (file) => pathToFileURL(join(out, "test/support", file.replace(/\.ts$/, ".js"))).href,
    remove: () => rmSync(out, { recursive: true, force: true }),
  };
}
