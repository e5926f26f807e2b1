// Node 20 runs no TypeScript, so worker threads and child processes always start from the compiled file in dist/.
// From compiled code this is the neighbouring .js; from src/ (tests) it is the same path under dist/.

/** URL of the JavaScript to start for a `.ts` entry given relative to the importing module. */
export function compiledEntry(importerUrl: string, relativeTs: string): URL {
  const url = new URL(relativeTs, importerUrl);
  if (importerUrl.endsWith(".ts")) url.pathname = url.pathname.replace(/\/src\/(?!.*\/src\/)/, "/dist/");
  url.pathname = url.pathname.replace(/\.ts$/, ".js");
  return url;
}
