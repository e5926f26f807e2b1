// Where this package is and which version it has.
import { readFileSync } from "node:fs";

// The version of the package, read once from package.json, one level above both src/ and dist/.

const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
};

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
