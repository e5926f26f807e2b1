// transformers.js on its own copy of ONNX Runtime, driven through `generate`. The prompt runs once, and its keys and values
// are repeated along the batch, so that a long past is not computed for every sequence.

import { startLap } from "../process/stopwatch.ts";
import { type Contender, type ContenderOptions, type Precision, WARM_STEPS } from "./contender.ts";
import { DecodeLap } from "./decode-lap.ts";
import { loadPeer } from "./peer.ts";

/** The part of transformers.js that is used here. */
interface TransformersModule {
  env: { allowRemoteModels: boolean; allowLocalModels: boolean };
  AutoModelForCausalLM: { from_pretrained(folder: string, options: object): Promise<Model> };
  Tensor: new (type: string, data: BigInt64Array | Float32Array, dims: number[]) => Tensor;
  DynamicCache: new (entries: Record<string, Tensor>) => object;
}
interface Tensor {
  readonly data: Float32Array | BigInt64Array;
  readonly dims: number[];
}
interface Model {
  (inputs: object): Promise<Record<string, Tensor>>;
  generate(options: object): Promise<Tensor>;
}

const DTYPE: Readonly<Partial<Record<Precision, string>>> = { f32: "fp32", int8: "q8", int4: "q4" };

export async function create(options: ContenderOptions): Promise<Contender> {
  const dtype = DTYPE[options.precision];
  if (dtype === undefined) throw new Error(`no ${options.precision} model was written for transformers.js`);
  const { AutoModelForCausalLM, DynamicCache, Tensor, env } =
    await loadPeer<TransformersModule>("@huggingface/transformers");
  env.allowRemoteModels = false;
  env.allowLocalModels = true;
  const model = await AutoModelForCausalLM.from_pretrained(options.model, {
    dtype,
    device: "cpu",
    local_files_only: true,
    session_options: { intraOpNumThreads: options.threads, interOpNumThreads: 1 },
  });
  let cell: { prompt: number[]; batch: number; steps: number; cache: Record<string, Tensor> } | null = null;

  /** The same ids in every row. */
  const rows = (ids: number[], batch: number): Tensor => {
    const row = BigInt64Array.from(ids, BigInt);
    const data = new BigInt64Array(batch * ids.length);
    for (let i = 0; i < batch; i++) data.set(row, i * ids.length);
    return new Tensor("int64", data, [batch, ids.length]);
  };
  const forward = (ids: number[], rowsOfLogits: number): Promise<Record<string, Tensor>> =>
    model({
      input_ids: rows(ids, 1),
      attention_mask: rows(ones(ids.length), 1),
      num_logits_to_keep: new Tensor("int64", BigInt64Array.of(BigInt(rowsOfLogits)), []),
    });
  const generate = (ids: number[], batch: number, count: number, more: object = {}): Promise<Tensor> =>
    model.generate({
      inputs: rows(ids, batch),
      attention_mask: rows(ones(ids.length), batch),
      max_new_tokens: count,
      do_sample: false,
      ...more,
    });

  return {
    async prefill(prompt) {
      const lap = startLap();
      await generate(prompt, 1, 1);
      return lap(prompt.length);
    },
    async prepareDecode(prompt, batch, steps) {
      const { logits: _, ...outputs } = await forward(prompt, 1);
      const cache: Record<string, Tensor> = {};
      for (const [name, tensor] of Object.entries(outputs)) {
        const part = tensor.data as Float32Array;
        const data = new Float32Array(batch * part.length);
        for (let i = 0; i < batch; i++) data.set(part, i * part.length);
        cache[name.replace("present", "past_key_values")] = new Tensor("float32", data, [
          batch,
          ...tensor.dims.slice(1),
        ]);
      }
      cell = { prompt, batch, steps, cache };
    },
    async decode() {
      const { prompt, batch, steps, cache } = cell!;
      const lap = new DecodeLap(batch, WARM_STEPS, steps);
      let isPrompt = true;
      const streamer = {
        put(tokens: unknown[]) {
          if (!isPrompt) lap.add(tokens.length);
          isPrompt = false;
        },
        end() {},
      };
      const ids = [...prompt, prompt.at(-1)!];
      await generate(ids, batch, WARM_STEPS + steps, { past_key_values: new DynamicCache({ ...cache }), streamer });
      return lap.result;
    },
    async finishDecode() {
      cell = null;
    },
    async score(tokens) {
      const { logits } = await forward(tokens, 0);
      const vocab = logits!.dims[2]!;
      const data = logits!.data as Float32Array;
      return tokens.slice(1).map((token, i) => logProbability(data.subarray(i * vocab, (i + 1) * vocab), token));
    },
    async greedy(prompt, count) {
      const { data } = await generate(prompt, 1, count);
      return Array.from(data as BigInt64Array, Number).slice(prompt.length);
    },
  };
}

const ones = (count: number): number[] => new Array<number>(count).fill(1);

function logProbability(logits: Float32Array, token: number): number {
  let highest = Number.NEGATIVE_INFINITY;
  for (const logit of logits) highest = Math.max(highest, logit);
  let total = 0;
  for (const logit of logits) total += Math.exp(logit - highest);
  return logits[token]! - highest - Math.log(total);
}
