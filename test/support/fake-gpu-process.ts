// A fake of the process that owns a GPU: protocol 2 without weights. Its logits are those of `hashRow`; its sampler is the
// project's; it keeps no keys and values, but counts pages, finds prefixes and preempts as a real one may. It fails in
// every way that a request or FLYWHEEL_FAKE_GPU asks for. compile-fakes.ts compiles it on demand.

import { connect } from "node:net";
import { checkFinish } from "../../src/engine/finish.ts";
import { type ArraysToSend, encodeFrame, type Frame, FrameReader } from "../../src/engine/gpu/frames.ts";
import type { JsonObject } from "../../src/json/json.ts";
import { InvalidLogitsError, NoLegalTokenError } from "../../src/sampling/errors.ts";
import { promptTokenLogprobs, promptTokenPreference, tokenLogprobs } from "../../src/sampling/logprobs.ts";
import { LogitRow } from "../../src/sampling/row.ts";
import { SequenceSampler } from "../../src/sampling/sampler.ts";
import type { SamplingParams } from "../../src/sampling/sampling-params.ts";
import type { Preference, TokenLogprobs } from "../../src/sampling/token-logprobs.ts";
import { tokenSet } from "../../src/sampling/token-set.ts";
import { hashRow } from "./fake-runner.ts";

/** Of FLYWHEEL_FAKE_GPU, as JSON. */
export interface FakeGpuOptions {
  pages?: number;
  /** Pause after each step. */
  stepMs?: number;
  /** Refuses to start with this sentence. */
  refuse?: string;
  /** Ends at once with these last words and code 1. */
  die?: string;
  protocol?: number;
  /** Answers no pings. */
  mute?: boolean;
}

/** A prompt that begins with one of these makes the process fail when it is computed. */
export const FAULTS = { exit: 251, kill: 252, hang: 253, garbage: 254, nan: 250, error: 249, lie: 248 } as const;

interface Row {
  number: number;
  request: Request;
  index: number;
  tokens: number[];
  sampler: SequenceSampler;
  params: SamplingParams;
  running: boolean;
  /** Whether the keys and values of all but the last token are there. */
  computed: boolean;
  entry: { position: number; legal: Int32Array | null; only: number; banned: number[] } | null;
}

interface Request {
  number: number;
  prompt: number[];
  root: string;
  adapter: number;
  rank: number;
  arrival: number;
  masked: boolean;
  sampling: JsonObject;
  legalSets: (Int32Array | null)[] | null;
  prefilled: boolean;
  cached: number;
  addedAt: number;
}

const PAGE = 64;
const options = JSON.parse(process.env.FLYWHEEL_FAKE_GPU ?? "{}") as FakeGpuOptions;

class FakeGpu {
  readonly #send: (header: object, arrays?: ArraysToSend) => void;
  readonly #rows = new Map<number, Row>();
  readonly #slots = new Map<number, Int32Array>();
  readonly #known = new Set<string>();
  #vocab = 0;
  #pages = options.pages ?? 64;
  #maxRows = 0;
  #caching = true;
  #step = 0;
  #awake = false;
  #hangs = false;
  readonly #counts = { preemptions: 0, prefixQueries: 0, prefixHits: 0 };

  constructor(send: (header: object, arrays?: ArraysToSend) => void) {
    this.#send = send;
  }

  receive(frame: Frame): void {
    switch (frame.type) {
      case "hello": {
        if (options.refuse !== undefined) {
          this.#send({ type: "refused", message: options.refuse });
          setTimeout(() => process.exit(4), 50);
          return;
        }
        const limits = frame.object("limits");
        this.#vocab = frame.number("vocabSize", frame.object("model"));
        this.#maxRows = frame.number("maxRows", limits);
        this.#caching = limits.prefixCaching as boolean;
        const device = { name: "fake", capability: null, totalBytes: 0, freeBytes: 0 };
        this.#send({ type: "ready", pages: this.#pages, pageTokens: PAGE, device, memory: {} });
        this.#send({ type: "stats", stats: this.#stats() });
        return;
      }
      case "ping":
        if (!options.mute) this.#send({ type: "pong" });
        return;
      case "add":
        this.#add(frame);
        break;
      case "masks":
        this.#masks(frame);
        break;
      case "stop":
        for (const number of frame.header.rows as number[]) this.#rows.delete(number);
        this.#send({ type: "stats", stats: this.#stats() });
        return;
      case "load":
      case "unload":
        this.#send({ type: "done", call: frame.number("call") });
        return;
      default:
        throw frame.problem("unknown");
    }
    this.#wake();
  }

  #add(frame: Frame): void {
    const sampling = frame.object("sampling");
    const words = Math.ceil(this.#vocab / 32);
    const index = frame.header.masked === undefined ? null : legalOf(frame, words);
    const request: Request = {
      number: frame.number("request"),
      prompt: [...frame.array("prompt", "i32")],
      root: frame.text("root"),
      adapter: frame.number("adapter"),
      rank: frame.number("rank"),
      arrival: frame.number("arrival"),
      masked: frame.header.masked as boolean,
      sampling,
      legalSets: index,
      prefilled: false,
      cached: 0,
      addedAt: performance.now(),
    };
    for (const [i, number] of (frame.header.rows as number[]).entries()) {
      const params = paramsOf(sampling, (sampling.keys as [number, number][])[i]!);
      this.#rows.set(number, {
        ...{ number, request, index: i, params, tokens: [...request.prompt], running: false, computed: false },
        sampler: new SequenceSampler({ ...params, logprobs: null }, 0, request.prompt, this.#vocab),
        entry: null,
      });
    }
  }

  #masks(frame: Frame): void {
    const words = Math.ceil(this.#vocab / 32);
    const bits = frame.array("bits", "i32");
    for (const [i, slot] of frame.array("bitSlots", "u32").entries()) {
      this.#slots.set(slot, bits.slice(i * words, (i + 1) * words));
    }
    const take = (ids: Int32Array) => {
      let at = 0;
      return (count: number) => {
        at += count;
        return [...ids.subarray(at - count, at)];
      };
    };
    const listed = take(frame.array("listIds", "i32"));
    const counts = frame.array("listCounts", "u32");
    for (const [i, slot] of frame.array("listSlots", "u32").entries()) {
      this.#slots.set(slot, tokenSet(listed(counts[i]!), this.#vocab));
    }
    const rows = frame.array("rows", "u32");
    const [positions, legal] = [frame.array("positions", "u32"), frame.array("legal", "i32", rows.length)];
    const [forcedCounts, only] = [frame.array("forcedCounts", "u32"), frame.array("only", "i32")];
    const bannedCounts = frame.array("bannedCounts", "u32");
    const [forced, banned] = [take(frame.array("forcedIds", "i32")), take(frame.array("bannedIds", "i32"))];
    for (const [i, number] of rows.entries()) {
      const [ids, ends] = [forced(forcedCounts[i]!), banned(bannedCounts[i]!)];
      const row = this.#rows.get(number);
      if (row === undefined) continue;
      if (row.entry !== null) throw frame.problem(`row ${number} has an entry already`);
      for (const id of ids) {
        row.tokens.push(id);
        row.sampler.note(id);
      }
      const mask = legal[i] === -1 ? null : this.#slots.get(legal[i]!);
      if (mask === undefined) throw frame.problem(`slot ${legal[i]} holds nothing`);
      row.entry = { position: positions[i]!, legal: mask, only: only[i]!, banned: ends };
    }
  }

  #wake(): void {
    if (this.#awake) return;
    this.#awake = true;
    const next = () =>
      options.stepMs ? setTimeout(() => this.#run(next), options.stepMs) : setImmediate(() => this.#run(next));
    next();
  }

  #run(next: () => void): void {
    this.#schedule();
    const ready = [...this.#rows.values()].filter(
      (row) => row.running && (!row.request.masked || row.entry !== null || !row.request.prefilled),
    );
    if (ready.length === 0) {
      this.#awake = false;
      return;
    }
    this.#stepOf(ready);
    if (!this.#hangs) next();
  }

  /** Rows run in order of rank, as many as there are pages for; the others wait, or wait again. */
  #schedule(): void {
    const order = [...this.#rows.values()].sort(
      (a, b) => a.request.rank - b.request.rank || a.request.arrival - b.request.arrival || a.index - b.index,
    );
    let [free, room] = [this.#pages, this.#maxRows];
    for (const row of order) {
      // The others of a request fork after its first one.
      const leads = row.request.prefilled || order.find(({ request }) => request === row.request) === row;
      const pages = Math.ceil((row.tokens.length + 1) / PAGE);
      const fits = leads && room > 0 && pages <= free;
      if (fits) {
        room--;
        free -= pages;
        if (!row.running && !row.computed) row.request.cached = this.#lookUp(row.request);
      } else if (row.running) {
        this.#counts.preemptions++;
        row.computed = false;
      }
      row.running = fits;
    }
  }

  #lookUp({ prompt, root, sampling, legalSets, prefilled, cached }: Request): number {
    if (prefilled) return cached;
    if (!this.#caching || sampling.promptLogprobs !== null) return 0;
    const most = legalSets === null ? prompt.length - 1 : prompt.length - legalSets.length - 1;
    let found = 0;
    while (found + PAGE <= most && this.#known.has(`${root} ${prompt.slice(0, found + PAGE)}`)) found += PAGE;
    this.#counts.prefixQueries += prompt.length;
    this.#counts.prefixHits += found;
    return found;
  }

  #stepOf(rows: readonly Row[]): void {
    const prefilled: Request[] = [];
    const faults: object[] = [];
    const sampled: { row: Row; id: number; finish: number; logprobs: TokenLogprobs | null }[] = [];
    let [decode, prefill] = [0, 0];
    for (const row of rows) {
      const { request, tokens } = row;
      if (!row.computed) prefill += tokens.length - (request.prefilled ? 0 : request.cached);
      else decode++;
      row.computed = true;
      if (!request.prefilled) {
        this.#misbehave(request.prompt[0]!);
        if (this.#hangs) return;
        const broken = this.#brokenBy(request);
        if (broken !== null) {
          const all = [...this.#rows.values()].filter((other) => other.request === request);
          for (const { number } of all) this.#rows.delete(number);
          faults.push({ rows: all.map(({ number }) => number), ...broken });
          continue;
        }
        request.prefilled = true;
        prefilled.push(request);
        this.#describe(request);
        for (let end = PAGE; end <= request.prompt.length; end += PAGE) {
          this.#known.add(`${request.root} ${request.prompt.slice(0, end)}`);
        }
      }
      if (request.masked && row.entry === null) continue;
      try {
        const { id, logprobs } = this.#sample(row);
        const ends = checkFinish(row.params, row.sampler.outputTokens);
        const finish = ends === null ? 0 : ends.reason === "length" ? 3 : ends.stopReason === null ? 1 : 2;
        sampled.push({ row, id, finish, logprobs });
        if (finish > 0) this.#rows.delete(row.number);
      } catch (error) {
        if (!(error instanceof NoLegalTokenError || error instanceof InvalidLogitsError)) throw error;
        this.#rows.delete(row.number);
        faults.push({ rows: [row.number], kind: "nothing", message: "" });
      }
    }
    const lists = sampled.map(({ logprobs }) => logprobs?.topIds ?? []);
    this.#send(
      { type: "step", step: ++this.#step, decode, prefill, faults, stats: this.#stats() },
      {
        prefilledRequests: Uint32Array.from(prefilled, ({ number }) => number),
        prefilledCached: Uint32Array.from(prefilled, ({ cached }) => cached),
        prefilledQueuedMs: Float32Array.from(prefilled, ({ addedAt }) => performance.now() - addedAt),
        rows: Uint32Array.from(sampled, ({ row }) => row.number),
        ids: Int32Array.from(sampled, ({ id }) => id),
        finish: Uint8Array.from(sampled, ({ finish, row }) => (row.request.prompt[0] === FAULTS.lie ? 1 : finish)),
        ...logprobArrays(sampled.map(({ logprobs }) => logprobs)),
        topCounts: Uint32Array.from(lists, (list) => list.length),
      },
    );
  }

  #sample(row: Row): { id: number; logprobs: TokenLogprobs | null } {
    const { entry, params, sampler } = row;
    const logits = this.#logits(row.tokens, row.request.adapter);
    row.entry = null;
    if (entry !== null && entry.position !== sampler.outputTokens.length) {
      throw new Error(`an entry for position ${entry.position}, at ${sampler.outputTokens.length}`);
    }
    const raw = new LogitRow(this.#vocab);
    raw.load(logits);
    if (entry?.legal) raw.allowOnly(entry.legal);
    raw.scan();
    const masked = raw.values.slice();
    let id: number;
    if (entry !== null && entry.only >= 0 && masked[entry.only]! > Number.NEGATIVE_INFINITY) {
      id = entry.only;
      sampler.note(id);
    } else {
      for (const banned of entry?.banned ?? []) masked[banned] = Number.NEGATIVE_INFINITY;
      id = sampler.sample(masked, null).id;
    }
    row.tokens.push(id);
    if (params.logprobs === null) return { id, logprobs: null };
    raw.load(logits);
    if (entry?.legal) raw.allowOnly(entry.legal);
    raw.scan();
    return { id, logprobs: tokenLogprobs(raw, id, params.logprobTokenIds ?? params.logprobs) };
  }

  #describe(request: Request): void {
    const { prompt, adapter, sampling, legalSets, number } = request;
    if (sampling.promptLogprobs !== null) {
      const all = prompt.slice(1).map((id, i) => {
        return promptTokenLogprobs(
          this.#logits(prompt.slice(0, i + 1), adapter),
          id,
          sampling.promptLogprobs as number,
        );
      });
      // In two pieces, as long prompts come.
      const half = all.length >> 1;
      for (const [start, piece] of [
        [1, all.slice(0, half)],
        [1 + half, all.slice(half)],
      ] as const) {
        const topCounts = Uint32Array.from(piece, ({ topIds }) => topIds.length);
        this.#send({ type: "prompt", request: number, start }, { ...logprobArrays(piece), topCounts });
      }
    }
    if (legalSets === null) return;
    const first = prompt.length - legalSets.length;
    const all = legalSets.map((legal, i) =>
      promptTokenPreference(this.#logits(prompt.slice(0, first + i), adapter), prompt[first + i]!, legal),
    );
    this.#send({ type: "preferences", request: number, start: 0 }, preferenceArrays(all));
  }

  #logits(tokens: readonly number[], adapter: number): Float32Array {
    const out = new Float32Array(this.#vocab);
    hashRow(Int32Array.from(tokens), new Int32Array(tokens.length).fill(adapter), out);
    return out;
  }

  #misbehave(token: number): void {
    if (token === FAULTS.exit) {
      process.stderr.write("CUDA error: an illegal memory access was encountered\n");
      process.exit(3);
    }
    if (token === FAULTS.kill) process.kill(process.pid, "SIGKILL");
    if (token === FAULTS.garbage) this.#send({ type: "step" });
    if (token === FAULTS.hang) this.#hangs = true;
  }

  #brokenBy({ prompt: [first] }: Request): { kind: string; message: string } | null {
    if (first === FAULTS.nan) return { kind: "nan", message: "" };
    return first === FAULTS.error ? { kind: "error", message: "out of memory" } : null;
  }

  #stats() {
    const running = [...this.#rows.values()].filter((row) => row.running);
    const pages = running.reduce((sum, row) => sum + Math.ceil(row.tokens.length / PAGE), 0);
    const waiting = this.#rows.size - running.length;
    return { running: running.length, waiting, kvUsage: pages / this.#pages, ...this.#counts };
  }
}

function legalOf(frame: Frame, words: number): (Int32Array | null)[] | null {
  const { arrays } = frame.header;
  if (!(arrays as [string][]).some(([name]) => name === "legalIndex")) return null;
  const bits = frame.array("legalBits", "i32");
  return [...frame.array("legalIndex", "i32")].map((at) => (at < 0 ? null : bits.slice(at * words, (at + 1) * words)));
}

function paramsOf(sampling: JsonObject, [low, high]: [number, number]): SamplingParams {
  const { repetition, frequency, presence, bias, allowed, banned, eos, stopIds, named, ...same } = sampling;
  return {
    ...(same as Partial<SamplingParams>),
    ...{ repetitionPenalty: repetition, frequencyPenalty: frequency, presencePenalty: presence, logitBias: bias },
    ...{ allowedTokenIds: allowed, badWords: (banned as number[]).map((id) => [id]), badWordTexts: [] },
    ...{ eosTokenId: eos, stopTokenIds: stopIds, ignoreEos: false, logprobTokenIds: named },
    ...{ seed: (BigInt(high) << 32n) | BigInt(low), repetitionDetection: null, thinking: null },
  } as SamplingParams;
}

function logprobArrays(all: readonly (TokenLogprobs | null)[]) {
  return {
    logprobs: Float32Array.from(all, (each) => each?.logprob ?? 0),
    ranks: Int32Array.from(all, (each) => each?.rank ?? 0),
    topIds: Int32Array.from(all.flatMap((each) => each?.topIds ?? [])),
    topLogprobs: Float32Array.from(all.flatMap((each) => each?.topLogprobs ?? [])),
  };
}

function preferenceArrays(all: readonly Preference[]) {
  return {
    logprobs: Float32Array.from(all, ({ logprob }) => logprob),
    legalMass: Float32Array.from(all, ({ legalMass }) => legalMass),
    legalIds: Int32Array.from(all, ({ likeliestLegal }) => likeliestLegal?.id ?? -1),
    legalLogprobs: Float32Array.from(all, ({ likeliestLegal }) => likeliestLegal?.logprob ?? 0),
    illegalIds: Int32Array.from(all, ({ likeliestIllegal }) => likeliestIllegal?.id ?? -1),
    illegalLogprobs: Float32Array.from(all, ({ likeliestIllegal }) => likeliestIllegal?.logprob ?? 0),
  };
}

if (process.env.FLYWHEEL_GPU_SOCKET !== undefined) {
  if (options.die !== undefined) {
    process.stderr.write(`${options.die}\n`);
    process.exit(1);
  }
  const socket = connect(process.env.FLYWHEEL_GPU_SOCKET);
  const send = (header: object, arrays?: ArraysToSend) => {
    for (const part of encodeFrame(header, arrays)) socket.write(part);
  };
  const gpu = new FakeGpu(send);
  const reader = new FrameReader();
  socket.on("data", (piece: Buffer) => {
    for (const frame of reader.push(piece)) gpu.receive(frame);
  });
  socket.on("close", () => process.exit(0));
  const { protocol = 2 } = options;
  send({ type: "dial", protocol, nonce: process.env.FLYWHEEL_GPU_NONCE, python: "", torch: "", triton: null });
}
