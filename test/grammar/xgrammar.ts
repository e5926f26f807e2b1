// XGrammar, the grammar engine of vLLM, as an independent judge. Its package contains a UMD file but declares ES modules, so
// this file evaluates it by hand. Malformed input aborts its WASM module, so tests give it only well-formed grammars.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { constants, Script } from "node:vm";
import type * as XGrammar from "@mlc-ai/web-xgrammar";

function load(): typeof XGrammar {
  const require = createRequire(import.meta.url);
  const file = require.resolve("@mlc-ai/web-xgrammar");
  const module = { exports: {} };
  const source = `(function (require, module, exports, __filename, __dirname) {${readFileSync(file, "utf8")}\n})`;
  const script = new Script(source, { importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER });
  const run = script.runInThisContext() as (...names: unknown[]) => void;
  run(require, module, module.exports, file, dirname(file));
  return module.exports as typeof XGrammar;
}

export const xgrammar: typeof XGrammar = load();

export function accepts(grammar: XGrammar.Grammar, text: string): Promise<boolean> {
  return xgrammar.Testings.isGrammarAcceptString(grammar, text);
}
