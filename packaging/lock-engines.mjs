// Some SDKs that the tests of clients use ask for Node 22, and work on Node 20 as well: the tests run them there. npm has no
// setting to say so for one package, and its warnings would drown real ones. So the lock file of test/clients leaves their
// `engines` out. Run this after an update of one of them; test/packed/warnings.test.ts tells when.
//   node packaging/lock-engines.mjs
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const TESTED_ON_NODE_20 = [
  "@ai-sdk/gateway",
  "@ai-sdk/openai",
  "@ai-sdk/openai-compatible",
  "@ai-sdk/provider",
  "@ai-sdk/provider-utils",
  "@langchain/openai",
  "ai",
  "openai",
];

const file = fileURLToPath(new URL("../test/clients/package-lock.json", import.meta.url));
const lock = JSON.parse(readFileSync(file, "utf8"));
for (const name of TESTED_ON_NODE_20) {
  const entry = lock.packages[`node_modules/${name}`];
  if (entry === undefined) throw new Error(`${name} is not installed: remove it from this list`);
  delete entry.engines;
}
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
