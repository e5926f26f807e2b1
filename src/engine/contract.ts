// The Engine contract: token ids and sampling parameters in, a stream of sampled tokens out.
// HTTP and training see this file, and adapter-slots.ts to load adapters; the embedded ONNX engine and the fakes of the
// tests implement it, and a remote engine could. No text and no HTTP below this line: stop *strings* are the caller's
// business (it watches the decoded text and calls `stop(index)`).

/** How one token is chosen and when a choice ends. All fields are final: defaults were applied by the caller. */
export interface SamplingParams {
  /** 0 = greedy. Values in (0, 0.01) were already raised to 0.01 by the caller. */
  temperature: number;
  /** 0 = off. */
  topK: number;
  /** (0, 1]; 1 = off. */
  topP: number;
  /** [0, 1]; 0 = off. */
  minP: number;
  repetitionPenalty: number;
  frequencyPenalty: number;
  presencePenalty: number;
  /** [token id, additive bias] pairs. */
  logitBias: readonly (readonly [number, number])[];
  /** null = every token; never empty. */
  allowedTokenIds: readonly number[] | null;
  /** Token sequences that must not be completed in the output. */
  badWords: readonly (readonly number[])[];
  minTokens: number;
  /** Output budget per choice, already clamped to the context. */
  maxTokens: number;
  /** The tokenizer's EOS: ends with stop reason null. null = the model has none. */
  eosTokenId: number | null;
  /** Other ids that end the choice, with stop reason = the id (the user's, plus extra EOS ids unless ignoreEos). */
  stopTokenIds: readonly number[];
  /** Ids masked while fewer than minTokens were produced, even under ignoreEos: EOS, extra EOS ids, user stop ids. */
  minTokensMask: readonly number[];
  ignoreEos: boolean;
  /** null = unseeded. Choice i uses seed + i. Signed 64-bit. */
  seed: bigint | null;
  /** null = none; k >= 0 = sampled token plus the k most likely; -1 = whole vocabulary. */
  logprobs: number | null;
  /** The same for prompt positions 1..; reading the prefix cache is then off for this request. */
  promptLogprobs: number | null;
  repetitionDetection: RepetitionDetection | null;
}

export interface RepetitionDetection {
  maxPatternSize: number;
  minPatternSize: number;
  minCount: number;
}

export interface GenerateRequest {
  promptTokenIds: readonly number[];
  /** Number of choices; they share one prefill. */
  n: number;
  sampling: SamplingParams;
  /** Content version of a loaded adapter, or null for the base model. */
  adapter: string | null;
  /** Isolates the prefix cache. */
  cacheSalt: string | null;
  /** Lower is handled earlier. */
  priority: number;
  /** Key of a compiled grammar (see grammar/), or null. */
  grammar: string | null;
  /** Opaque per-request parameters for engines that know them (engine_xargs, kv_transfer_params); ours ignores them. */
  extra?: Readonly<Record<string, unknown>>;
}

/** A token with its alternatives; log-probabilities are natural, of the raw (grammar-masked) distribution. */
export interface TokenLogprobs {
  logprob: number;
  /** 1 = most likely: the number of entries with logprob >= this one. */
  rank: number;
  /** The k most likely, best first: ids and their log-probabilities. */
  topIds: readonly number[];
  topLogprobs: readonly number[];
}

export interface SampledToken {
  id: number;
  /** null when the request asked for none. */
  logprobs: TokenLogprobs | null;
}

export type FinishReason = "stop" | "length" | "repetition" | "abort" | "error";

export interface Finish {
  reason: FinishReason;
  /** EOS and length: null; another stop id: that id; repetition: "repetition_detected". */
  stopReason: number | string | null;
  /** Set when reason is "error". */
  message?: string;
  /**
   * Set when the error is the request's own doing and `message` is meant for its sender: its controls leave no token,
   * or its constraint cannot be followed. Otherwise the message is for the log.
   */
  fault?: "contradiction" | "constraint";
}

/** Once per request, before its first tokens. */
export interface PrefillOutput {
  type: "prefill";
  /** Prompt tokens taken from the prefix cache: a multiple of the block size, less than the prompt length. */
  cachedTokens: number;
  /** Element 0 is null; element i is about prompt token i. null when not asked for. */
  promptLogprobs: readonly (TokenLogprobs | null)[] | null;
  /** Milliseconds from submission to the first step. Absent: not measured. */
  queuedMs?: number;
}

/** New tokens of one choice; `finish` is set on its last output, after which the choice says nothing more. */
export interface TokensOutput {
  type: "tokens";
  index: number;
  tokens: readonly SampledToken[];
  finish: Finish | null;
}

export type EngineOutput = PrefillOutput | TokensOutput;

/** A running request. Iterate it to the end or call `abort`; breaking out of the loop aborts too. */
export interface Generation extends AsyncIterable<EngineOutput> {
  /** End one choice early (a stop string matched): frees it before the next step, emits nothing more for it. */
  stop(index: number): void;
  /** End all choices now. Idempotent. The iterator then finishes without further outputs. */
  abort(): void;
}

export interface AdapterInfo {
  /** Hash of the adapter's content: names may be reused, versions are not. */
  version: string;
  rank: number;
}

/** Every adapter slot is taken: by adapters that stay until somebody unloads them or, if `passing`, by requests. */
export class NoAdapterSlot extends Error {
  readonly passing: boolean;

  constructor(message: string, passing = false) {
    super(message);
    this.name = "NoAdapterSlot";
    this.passing = passing;
  }
}

/** A sound adapter, but of a larger rank than this server serves. */
export class AdapterTooLarge extends Error {
  constructor(message: string) {
    super(message);
    this.name = "AdapterTooLarge";
  }
}

export interface EngineStats {
  running: number;
  waiting: number;
  /** Fraction of the KV budget in use, 0..1. */
  kvUsage: number;
  preemptions: number;
  /** These three count tokens of prompts: looked up in the prefix cache, found there, and of all prompts that are done. */
  prefixQueries: number;
  prefixHits: number;
  promptTokens: number;
  generatedTokens: number;
  steps: number;
  /** How many tokens the steps computed. */
  stepTokens: StepTokens;
}

/** A histogram. `counts[i]`: steps of at most `bounds[i]` tokens and more than the bound before; the last: of more. */
export interface StepTokens {
  bounds: readonly number[];
  counts: readonly number[];
  /** Tokens of all steps. */
  sum: number;
}

export interface ModelInfo {
  vocabSize: number;
  /** Context length: prompt plus output. */
  maxModelLen: number;
  /** Positions per block of the key/value cache. */
  blockSize: number;
  /** Tokens that the prefix cache reuses together: a block or a part of it. */
  linkSize: number;
  /** "fcfs" refuses non-zero priorities at the edge. */
  policy: "priority" | "fcfs";
  maxLoras: number;
  maxLoraRank: number;
}

export interface Engine {
  readonly info: ModelInfo;
  /** Queue a request. Invalid requests were refused before; engine faults arrive as finish "error". */
  generate(request: GenerateRequest): Generation;
  /**
   * Load a PEFT folder; resolves to its content version. Loading the same content twice is harmless. Rejects with
   * NoAdapterSlot when there is no room. Only for adapter-slots.ts, which makes room.
   */
  loadAdapter(folder: string): Promise<AdapterInfo>;
  /** Requests in flight finish on it; later requests for it are refused. */
  unloadAdapter(version: string): Promise<void>;
  stats(): EngineStats;
  /** false once the engine thread has died and could not be restarted. */
  healthy(): boolean;
  /** Aborts what is left and frees everything. */
  close(): Promise<void>;
}
