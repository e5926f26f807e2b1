// `npm run bench:gguf -- FILE`: a GGUF file here and in llama.cpp. Compares the ids of some texts, the most likely replies to
// them, and the distributions of every next token over each text and llama.cpp's reply.

import { availableParallelism } from "node:os";
import { basename } from "node:path";
import { parseArgs } from "node:util";
import { readGgufMetadata } from "../../src/model/gguf/open-gguf.ts";
import type { WeightType } from "../../src/model/linear/linear.ts";
import { ggufTextFiles } from "../../src/text/gguf/gguf-text-files.ts";
import { textModelOf } from "../../src/text/text-model.ts";
import { loadPeer } from "../contenders/peer.ts";
import { flagsOrExit } from "../process/flags-or-exit.ts";
import { commonLength, divergence } from "./divergence.ts";
import type { FileReader } from "./file-reader.ts";
import { openInFlywheel } from "./flywheel-file.ts";
import { type LlamaCpp, openInLlamaCpp } from "./llama-cpp-file.ts";

const USAGE = `npm run bench:gguf -- FILE.gguf ... [options]
  --dtypes LIST   some of float32,int8,int4 (default: float32,int8)
  --tokens N      length of the replies (default: 32)
  --threads N     threads of both engines (default: all cores)`;
const TYPES: readonly WeightType[] = ["float32", "int8", "int4"];
const TEXTS = [
  "Once upon a time, in a small village near the sea, there lived an old fisherman who",
  "The three primary colours are red, yellow and blue. If you mix red and yellow, you get",
  "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
  "Die Hauptstadt von Frankreich ist Paris, und die Hauptstadt von Italien",
  'Question: What is the boiling point of water at sea level?\nAnswer: "',
];

interface Answers {
  replies: number[][];
  /** Of all texts, each followed by llama.cpp's reply. */
  rows: Float64Array[];
}

const flags = flagsOrExit((args) => {
  const options = { dtypes: { type: "string" }, tokens: { type: "string" }, threads: { type: "string" } } as const;
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  const dtypes = (values.dtypes ?? "float32,int8").split(",").map((name) => {
    const type = TYPES.find((each) => each === name);
    if (type === undefined) throw new Error(`--dtypes takes ${TYPES.join(", ")}; found "${name}"`);
    return type;
  });
  if (positionals.length === 0) throw new Error("give a GGUF file");
  const [count, threads] = [Number(values.tokens ?? 32), Number(values.threads ?? availableParallelism())];
  if (!(count >= 1) || !(threads >= 1)) throw new Error("--tokens and --threads need positive numbers");
  return { files: positionals, dtypes, count, threads };
}, USAGE);

const llamaCpp = await loadPeer<LlamaCpp>("node-llama-cpp");
for (const file of flags.files) await compare(file);

async function compare(file: string): Promise<void> {
  const { tokenizer } = textModelOf(ggufTextFiles(readGgufMetadata(file)), {});
  const prompts = TEXTS.map((text) => tokenizer.encode(text, { addSpecialTokens: true }));
  const llama = await openInLlamaCpp(llamaCpp, file, flags.threads);
  const ownIds = TEXTS.map((text) => tokenizer.encode(text, { addSpecialTokens: false }).join());
  const equalIds = TEXTS.filter((text, i) => llama.tokenize(text).join() === ownIds[i]).length;
  const replies = await repliesOf(llama, prompts);
  const texts = prompts.map((prompt, i) => [...prompt, ...replies[i]!]);
  const answers = new Map<string, Answers>([["llama.cpp", { replies, rows: await rowsOf(llama, texts) }]]);
  await llama.close();
  const longest = Math.max(...texts.map((tokens) => tokens.length));
  for (const type of flags.dtypes) {
    const own = await openInFlywheel(file, type, flags.threads, longest);
    answers.set(type, { replies: await repliesOf(own, prompts), rows: await rowsOf(own, texts) });
    await own.close();
  }
  print(file, equalIds, answers);
}

async function repliesOf(reader: FileReader, prompts: readonly number[][]): Promise<number[][]> {
  const replies: number[][] = [];
  for (const prompt of prompts) replies.push(await reader.greedy(prompt, flags.count));
  return replies;
}

async function rowsOf(reader: FileReader, texts: readonly number[][]): Promise<Float64Array[]> {
  const rows: Float64Array[] = [];
  for (const tokens of texts) rows.push(...(await reader.distributions(tokens)));
  return rows;
}

function print(file: string, equalIds: number, answers: ReadonlyMap<string, Answers>): void {
  const all = [...answers];
  const positions = all[0]![1].rows.length;
  console.log(`\n${basename(file)}: ${equalIds} of ${TEXTS.length} texts have the same ids; ${positions} positions\n`);
  console.log("| from → to | mean KL | largest KL | same first choice | equal tokens of each reply |");
  console.log("|---|---:|---:|---:|---:|");
  for (const [i, [from, a]] of all.entries()) {
    for (const [to, b] of all.slice(i + 1)) {
      const { meanKl, largestKl, sameChoice } = divergence(a.rows, b.rows);
      const common = a.replies.map((reply, text) => commonLength(reply, b.replies[text]!));
      const numbers = [meanKl.toPrecision(2), largestKl.toPrecision(2), `${(100 * sameChoice).toFixed(1)} %`];
      console.log(`| ${from} → ${to} | ${numbers.join(" | ")} | ${common.join(", ")} of ${flags.count} |`);
    }
  }
}
