// XGrammar in WebAssembly, the build vLLM's engine has for browsers: any whitespace, and properties that the schema does
// not mention are allowed unless it forbids them.

import type * as XGrammar from "@mlc-ai/web-xgrammar";
import { tokenBytes } from "../../src/grammar/match/token-trie.ts";
import type { TokenVocabulary } from "../../src/grammar/match/token-vocabulary.ts";
import { xgrammar } from "../../test/grammar/xgrammar.ts";
import { StepTimer, startCpuClock } from "./clocks.ts";
import type { EngineOptions, GrammarEngine, Job, Verdict } from "./engine.ts";
import { type Encode, longestMatch } from "./longest-match.ts";
import { loadVocabulary } from "./vocabulary.ts";

class XGrammarEngine implements GrammarEngine {
  readonly #compiler: XGrammar.GrammarCompiler;
  readonly #encode: Encode;
  readonly #stop: number;

  constructor(compiler: XGrammar.GrammarCompiler, encode: Encode, stop: number) {
    this.#compiler = compiler;
    this.#encode = encode;
    this.#stop = stop;
  }

  async measure({ schema, instances }: Job): Promise<Verdict> {
    const cpu = startCpuClock();
    const grammar = await this.#compiler.compileJSONSchema(schema, true, undefined, undefined, false);
    const compileMs = cpu();
    const timer = new StepTimer();
    const accepted: boolean[] = [];
    for (const text of instances) accepted.push(await this.#follow(grammar, this.#encode(text), timer));
    grammar.dispose();
    return { compiled: true, compileMs, accepted, microseconds: Float32Array.from(timer.microseconds), broken: null };
  }

  async #follow(grammar: XGrammar.CompiledGrammar, tokens: readonly number[], timer: StepTimer): Promise<boolean> {
    const matcher = await xgrammar.GrammarMatcher.createGrammarMatcher(grammar);
    try {
      for (const token of [...tokens, this.#stop]) {
        timer.start();
        await matcher.getNextTokenBitmask();
        const legal = matcher.acceptToken(token);
        timer.end();
        if (!legal) return false;
      }
      return true;
    } finally {
      matcher.dispose();
    }
  }
}

export async function create({ vocabulary: name }: EngineOptions): Promise<GrammarEngine> {
  const vocabulary = await loadVocabulary(name);
  const stop = vocabulary.size - 1;
  const tokenizer = await xgrammar.TokenizerInfo.createTokenizerInfo(
    byteLevelPieces(vocabulary),
    "byte_level",
    false,
    vocabulary.size,
    stop,
  );
  const compiler = await xgrammar.GrammarCompiler.createGrammarCompiler(tokenizer, false);
  return new XGrammarEngine(compiler, longestMatch(vocabulary), stop);
}

/** Byte-level vocabularies write every byte as one printable character. */
function byteLevelPieces(vocabulary: TokenVocabulary): string[] {
  const characters: string[] = [];
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    characters.push(String.fromCharCode(printable ? byte : next++));
  }
  return Array.from({ length: vocabulary.size }, (_, id) =>
    id === vocabulary.size - 1
      ? "<|stop|>"
      : Array.from(tokenBytes(vocabulary, id), (byte) => characters[byte]).join(""),
  );
}
