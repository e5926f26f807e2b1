// The Engine contract: token ids and sampling parameters in, a stream of sampled tokens out. api/ and training/ know an
// engine by this file, and load adapters through adapter-slots.ts. WorkerEngine (thread/worker-host.ts) and the tests'
// fakes implement it. An engine knows no text and no HTTP: the caller looks for stop strings and calls `stop(index)`.

import type { ConstrainedOutput } from "../grammar/constraint.ts";
import type { AdapterInfo } from "../model/lora/adapter-host.ts";
import type { SamplingParams } from "../sampling/sampling-params.ts";
import type { Preference, SampledToken, TokenLogprobs } from "../sampling/token-logprobs.ts";

export interface GenerateRequest {
  promptTokenIds: readonly number[];
  /** Number of choices; they share one prefill. */
  n: number;
  sampling: SamplingParams;
  /** Content version of a loaded adapter, or null for the base model. */
  adapter: string | null;
  /** Isolates the prefix cache: only requests with the same salt share prefixes. From the edge, 64 hexadecimal digits. */
  cacheSalt: string | null;
  /** Lower runs earlier. */
  priority: number;
  /** Key of a compiled grammar (see grammar/), or null. */
  grammar: string | null;
  /**
   * Asks for `preferences`: for each of the last tokens of the prompt, the tokens that were legal in its place, as a bitset
   * (null = all). They leave at least one token of the prompt before them. null = nothing is asked.
   */
  legalSets: readonly (Int32Array | null)[] | null;
  /** What `grammar` was compiled from, for engines that compile it themselves. null without a grammar. */
  constraint: ConstrainedOutput | null;
  /** Opaque parameters for engines that know them (engine_xargs, kv_transfer_params). The embedded engine ignores them. */
  extra?: Readonly<Record<string, unknown>>;
}

export type FinishReason = "stop" | "length" | "repetition" | "abort" | "error";

export interface Finish {
  reason: FinishReason;
  /** EOS and length: null; another stop id: that id; repetition: "repetition_detected". */
  stopReason: number | string | null;
  /** Set when reason is "error". */
  message?: string;
  /**
   * Set when `message` is for the sender; otherwise it is for the log. The request's controls leave no token
   * ("contradiction"), its constraint cannot be followed ("constraint") or not in time ("slow"), the engine cannot do what it asks ("refused"),
   * no engine is there now and it helps to try again ("unavailable"), or a replica was lost or does not have the
   * adapter ("lost", "unloaded"), which only a fleet sees.
   */
  fault?: "contradiction" | "constraint" | "slow" | "refused" | "unavailable" | "lost" | "unloaded";
  /** What the engine says about a transfer of keys and values, for whoever asked with kv_transfer_params. */
  kvTransferParams?: Readonly<Record<string, unknown>>;
}

/** Comes once per request, before its first tokens. */
export interface PrefillOutput {
  type: "prefill";
  /**
   * Prompt tokens taken from the prefix cache: a multiple of `linkSize`, less than the prompt length. null: not known
   * yet; a `usage` output may follow.
   */
  cachedTokens: number | null;
  /** Element i describes prompt token i; element 0 is null. null when not asked for. */
  promptLogprobs: readonly (TokenLogprobs | null)[] | null;
  /** One for each of the request's `legalSets`. Absent when not asked for. */
  preferences?: readonly Preference[];
  /** Milliseconds from submission to the first step. Absent: not measured. */
  queuedMs?: number;
}

/** New tokens of one choice. `finish` is set on its last output; nothing follows for that choice. */
export interface TokensOutput {
  type: "tokens";
  index: number;
  tokens: readonly SampledToken[];
  finish: Finish | null;
}

/** Prompt tokens from the prefix cache, from an engine that tells late. Comes before the last choice finishes. */
export interface UsageOutput {
  type: "usage";
  cachedTokens: number;
}

export type EngineOutput = PrefillOutput | TokensOutput | UsageOutput;

/** A running request. Iterate it to the end or call `abort`; breaking out of the loop aborts too. */
export interface Generation extends AsyncIterable<EngineOutput> {
  /** Ends one choice early (a stop string matched). It is freed before the next step and emits nothing more. */
  stop(index: number): void;
  /** Ends all choices now. The iterator finishes without further outputs. Idempotent. */
  abort(): void;
}

export interface EngineStats {
  running: number;
  waiting: number;
  /** Fraction of the KV budget in use, 0..1. */
  kvUsage: number;
  preemptions: number;
  /** Prompt tokens looked up in the prefix cache, found there, and of all prompts that are done. */
  prefixQueries: number;
  prefixHits: number;
  promptTokens: number;
  generatedTokens: number;
  steps: number;
  /** How many tokens the steps produced: generated ones, and the computed part of prompts that were completed. */
  stepTokens: StepTokens;
}

/** A histogram. `counts[i]`: steps of at most `bounds[i]` tokens but more than the bound before. The last counts the rest. */
export interface StepTokens {
  bounds: readonly number[];
  counts: readonly number[];
  /** Tokens of all steps. */
  sum: number;
}

/** One step of the model. */
export interface EngineStep {
  /** When it ended, in milliseconds since 1970. */
  at: number;
  /** Sequences that got their next token. */
  decode: number;
  /** Tokens of prompts. */
  prefill: number;
}

export interface ModelInfo {
  vocabSize: number;
  /** Context length: prompt plus output. */
  maxModelLen: number;
  /** Positions per block of key/value memory. */
  positionsPerBlock: number;
  /** Positions that fit into the key/value memory; null = the engine does not say. */
  cacheTokens: number | null;
  /** Tokens per link of the prefix cache, which reuses whole links. A block holds one link or several. */
  linkSize: number;
  /** Under "fcfs" the edge refuses non-zero priorities. */
  policy: "priority" | "fcfs";
  maxLoras: number;
  maxLoraRank: number;
}

/** One engine of a fleet, for metrics. */
export interface ReplicaFacts {
  /** May be an address: only admins see it. Everybody else knows a replica by its place (fleet/replica.ts). */
  name: string;
  /** "excluded": it says that it is ready, but has failed a moment ago. */
  state: "starting" | "ready" | "draining" | "away" | "excluded";
  /** Most choices to have there at once, and those there now. */
  maxInFlight: number;
  inFlight: number;
  /** Requests sent to it since the start. */
  requests: number;
  /** Choices that it lost. */
  failures: number;
  /** Choices that went on here after another replica had lost them. */
  resumes: number;
  /** Prompt tokens it computed or found in its prefix cache, and those found. */
  promptTokens: number;
  prefixHitTokens: number;
  generatedTokens: number;
}

export interface Engine {
  readonly info: ModelInfo;
  /** Queues a valid request. Engine faults arrive as finish "error". */
  generate(request: GenerateRequest): Generation;
  /**
   * Loads a PEFT folder and resolves to its content version, which stays loaded, restarts included, until it is
   * unloaded. Loading the same content again is harmless. Rejects with NoAdapterSlot when no slot is free.
   * Only adapter-slots.ts calls this and `unloadAdapter`: it makes room and knows who still needs a slot.
   */
  loadAdapter(folder: string): Promise<AdapterInfo>;
  /** Frees the slot. No request may be on the adapter. Does nothing when the version is not loaded. */
  unloadAdapter(version: string): Promise<void>;
  stats(): EngineStats;
  /** The newest steps after the first `seen` ones, as far as they are still known. Absent: the engine does not tell. */
  steps?(seen: number): EngineStep[];
  /** The engines behind this one, if it is a fleet. */
  replicas?(): ReplicaFacts[];
  /** false once the engine thread has died and could not be restarted, and while no replica of a fleet is ready. */
  healthy(): boolean;
  /** Aborts all requests and frees everything. */
  close(): Promise<void>;
}
