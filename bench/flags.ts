// The command line of `npm run bench`.

import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Size, sizes } from "./models/random-checkpoint.ts";
import { cells, type EngineName, engines, type PeerName, type Plan, peers, precisions } from "./plan.ts";

export interface Flags {
  plan: Plan;
  quick: boolean;
  /** Checkpoint folder; null = random weights. */
  model: string | null;
  /** Size of the random weights. */
  size: Size;
  /** Folder for the results; null = only print them. */
  out: string | null;
}

export const USAGE = `npm run bench -- [options]
  --quick               a few cells, f32 and int8, three repetitions: about two minutes
  --model DIR           a checkpoint folder (Llama, Mistral, Qwen 2 or Qwen 3 layout) instead of random weights
  --size NAME           random weights: ${sizes.join(" or ")} (default: ${sizes[0]})
  --threads N           threads of every engine (default: all cores)
  --repeats N           repetitions of every cell; prompts get three times as many (default: 5, quick 3)
  --precisions LIST     some of ${precisions.join(",")}
  --engines LIST        some of ${engines.join(",")}
  --peer NAME=WHERE     also llama-batched-bench=PATH, llama.cpp's own benchmark program, or ollama=URL, a running
                        server; may be given for each
  --out DIR             where the results go (default: bench/results; "-" only prints them)`;

/** Throws an error whose message is for the user. */
export function readFlags(args: readonly string[]): Flags {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      model: { type: "string" },
      size: { type: "string", default: sizes[0] },
      threads: { type: "string" },
      repeats: { type: "string" },
      precisions: { type: "string" },
      engines: { type: "string" },
      peer: { type: "string", multiple: true, default: [] },
      out: { type: "string" },
    },
  });
  const { quick } = values;
  const others = Object.fromEntries(values.peer.map(peer));
  return {
    quick,
    model: values.model ?? null,
    size: some("--size", values.size, sizes, sizes)[0]!,
    out: values.out === "-" ? null : (values.out ?? fileURLToPath(new URL("../../results", import.meta.url))),
    plan: {
      threads: count("--threads", values.threads, availableParallelism()),
      repeats: count("--repeats", values.repeats, quick ? 3 : 5),
      cells: cells(quick),
      precisions: some("--precisions", values.precisions, precisions, quick ? ["f32", "int8"] : precisions),
      engines: [
        ...some<EngineName>("--engines", values.engines, engines, engines),
        ...peers.filter((name) => name in others),
      ],
      peers: others,
    },
  };
}

function peer(text: string): [PeerName, string] {
  const [, name, where] = /^([^=]*)=(.+)$/s.exec(text) ?? [];
  const known = peers.find((each) => each === name);
  if (known === undefined) throw new Error(`--peer takes ${peers.join(" or ")}, "=" and where it is; found "${text}"`);
  return [known, where!];
}

function count(flag: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new Error(`${flag} needs a positive whole number, found "${text}"`);
  return Number(text);
}

function some<T extends string>(
  flag: string,
  text: string | undefined,
  known: readonly T[],
  otherwise: readonly T[],
): readonly T[] {
  if (text === undefined) return otherwise;
  return text.split(",").map((name) => {
    const found = known.find((each) => each === name);
    if (found === undefined) throw new Error(`${flag} takes ${known.join(", ")}; found "${name}"`);
    return found;
  });
}
