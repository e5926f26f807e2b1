// A running Ollama, through its HTTP API. It gets the same GGUF file as llama.cpp. Prompts are texts of which the file's
// placeholder tokenizer makes one token each, and every prompt begins differently, because the server remembers the last one.
// Never run against a real server: the tests play a recorded session.
import { createHash } from "node:crypto";
import { createReadStream, type ReadStream } from "node:fs";
import type { Lap } from "../process/stopwatch.ts";
import { type Contender, type ContenderOptions, WARM_STEPS } from "./contender.ts";
import { DecodeLap } from "./decode-lap.ts";

interface Options extends ContenderOptions {
  url: string;
}

/** A line of a reply; the counts come with the last. Times are nanoseconds. */
interface Line {
  done: boolean;
  error?: string;
  prompt_eval_count?: number;
  prompt_eval_duration?: number;
}

export async function create({ url, model: file, threads, totalTokens }: Options): Promise<Contender> {
  const model = `flywheel-bench-${process.pid}`;
  const call = async (path: string, body: string | ReadStream): Promise<Response> => {
    const response = await fetch(new URL(path, url), {
      method: "POST",
      body,
      duplex: "half",
    } as unknown as RequestInit);
    if (!response.ok) throw new Error(`Ollama answers ${path} with ${response.status}: ${await response.text()}`);
    return response;
  };
  const digest = `sha256:${await sha256(file)}`;
  await call(`/api/blobs/${digest}`, createReadStream(file));
  const created = { model, files: { "model.gguf": digest }, stream: false };
  await (await call("/api/create", JSON.stringify(created))).json();

  /** Calls `each` for every token, and returns the last line. */
  const generate = async (prompt: readonly number[], count: number, each: () => void): Promise<Line> => {
    const text = prompt.map((id) => `t${id}`).join("");
    const options = { num_predict: count, temperature: 0, num_ctx: totalTokens, num_thread: threads };
    const body = JSON.stringify({ model, prompt: text, raw: true, stream: true, options });
    for await (const line of lines(await call("/api/generate", body))) {
      if (line.error !== undefined) throw new Error(`Ollama: ${line.error}`);
      if (!line.done) each();
      else if (line.prompt_eval_count === prompt.length) return line;
      else throw new Error(`Ollama read ${line.prompt_eval_count} tokens of ${prompt.length}: not the same prompt`);
    }
    throw new Error("Ollama ended a reply early");
  };
  let laps = 0;
  /** The prompt with another beginning. */
  const another = (prompt: readonly number[]) => [++laps % 1000, ...prompt.slice(1)];
  let cell: { prompt: readonly number[]; batch: number; steps: number } | null = null;
  return {
    async prefill(prompt): Promise<Lap> {
      const { prompt_eval_duration } = await generate(another(prompt), 1, () => {});
      return { tokens: prompt.length, seconds: prompt_eval_duration! / 1e9, cpuSeconds: Number.NaN };
    },
    async prepareDecode(prompt, batch, steps) {
      cell = { prompt, batch, steps };
    },
    /** The sequences run at once if the server has OLLAMA_NUM_PARALLEL slots for them. */
    async decode() {
      const { prompt, batch, steps } = cell!;
      const lap = new DecodeLap(batch, WARM_STEPS, steps);
      const replies = Array.from({ length: batch }, () =>
        generate(another(prompt), WARM_STEPS + steps, () => lap.add(1)),
      );
      await Promise.all(replies);
      return { ...lap.result, cpuSeconds: Number.NaN };
    },
    async finishDecode() {
      cell = null;
    },
    score: async () => [],
    greedy: async () => [],
  };
}

async function* lines({ body }: Response): AsyncGenerator<Line> {
  let rest = "";
  for await (const piece of body!.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + piece).split("\n");
    rest = parts.pop()!;
    for (const part of parts) if (part !== "") yield JSON.parse(part) as Line;
  }
  if (rest !== "") yield JSON.parse(rest) as Line;
}

async function sha256(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of createReadStream(file)) hash.update(piece as Buffer);
  return hash.digest("hex");
}
