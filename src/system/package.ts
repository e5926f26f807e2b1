// Where this package is and which version it has.
import { existsSync, readFileSync } from "node:fs";

/** The nearest package.json above this file, wherever it was compiled to: dist/, bench/dist/, test/simulation/dist/. */
function manifestFile(): URL {
  let file = new URL("../../package.json", import.meta.url);
  while (!existsSync(file) && file.pathname !== "/package.json") file = new URL("../package.json", file);
  return file;
}

// Read once.
const manifest = JSON.parse(readFileSync(manifestFile(), "utf8")) as { version: string };

export const PACKAGE_VERSION: string = manifest.version;

// Node 20 runs no TypeScript, so worker threads and child processes always start from the compiled file in dist/.
// From compiled code this is the neighbouring .js; from src/ (tests) it is the same path under dist/.

/** URL of the JavaScript to start for a `.ts` entry given relative to the importing module. */
export function compiledEntry(importerUrl: string, relativeTs: string): URL {
  const url = new URL(relativeTs, importerUrl);
  if (importerUrl.endsWith(".ts")) url.pathname = url.pathname.replace(/\/src\/(?!.*\/src\/)/, "/dist/");
  url.pathname = url.pathname.replace(/\.ts$/, ".js");
  return url;
}
