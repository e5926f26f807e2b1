// The loop of an engine whose model runs in another process (gpu-process.ts). The process decides which rows run, holds
// their keys and values, samples, and counts; this side runs what must see tokens: grammars, thinking budgets, bad words
// of several tokens, repetition. A row is one choice. Rows that need something from here at every position wait for it
// there (`masks`); all others never wait for this side, which hears of their tokens a step later.
//
// The loop crashes with the process. The engine's thread then ends, and worker-host.ts starts both again.

import type { ConstraintFactory } from "../../grammar/match/sequence-constraint.ts";
import type { ModelConfig } from "../../model/checkpoint/model-config.ts";
import type { AdapterInfo } from "../../model/lora/adapter-host.ts";
import type { SampledToken } from "../../sampling/token-logprobs.ts";
import type { Finish, GenerateRequest, ModelInfo } from "../contract.ts";
import { TokenSource } from "../next-tokens.ts";
import { errorFinish } from "../request-table.ts";
import { maxModelLen, type Room, refusal } from "../scheduler.ts";
import { rankOf, type SchedulingOptions } from "../scheduling.ts";
import type { StatCells } from "../stats.ts";
import type { Command } from "../thread/engine-client.ts";
import { answer, type Loop, type LoopParts, toError } from "../thread/engine-loop.ts";
import { addFrame } from "./add-frame.ts";
import type { Frame } from "./frames.ts";
import { GpuAdapters } from "./gpu-adapters.ts";
import type { GpuProcess } from "./gpu-process.ts";
import { MaskedRows, RowMasks } from "./row-masks.ts";
import { type GpuRequest, type Row, RowTable } from "./row-table.ts";
import { checkEnd, faultOf, readFaults, readPreferences, readPrompt, readTokens } from "./sampled-rows.ts";

/** Masks that the process keeps. */
export const MASK_SLOTS = 4096;
/** How long the process may take for a step. */
const STALL_MS = 30_000;

export interface GpuLoopParts extends LoopParts {
  process: GpuProcess;
  config: ModelConfig;
  /** What the process has room for. */
  room: Room;
  maxLoras: number;
  maxLoraRank: number;
  /** null = this engine takes no grammars. */
  constraints: ConstraintFactory | null;
  stallMs?: number;
}

export class GpuLoop implements Loop {
  readonly info: ModelInfo;
  readonly #process: GpuProcess;
  readonly #room: Room;
  readonly #options: SchedulingOptions;
  readonly #stats: StatCells;
  readonly #deliver: LoopParts["deliver"];
  readonly #adapters: GpuAdapters;
  readonly #source: TokenSource;
  readonly #masked: MaskedRows;
  readonly #rows = new RowTable((row) => this.#forget(row));
  /** Rows that the process must end. */
  #stopped: number[] = [];
  #arrivals = 0;
  /** What the process counted when it was last heard. */
  #counted = { running: 0, preemptions: 0, prefixQueries: 0, prefixHits: 0 };
  /** When the process last ran a step, or got work after it had none. */
  #lastStepAt = 0;
  readonly #watch: NodeJS.Timeout;
  #closed = false;

  constructor(parts: GpuLoopParts) {
    const { process, config, room, maxLoras, maxLoraRank, options, onCrash } = parts;
    this.#process = process;
    this.#room = room;
    this.#options = options;
    this.#stats = parts.stats;
    this.#deliver = parts.deliver;
    this.#adapters = new GpuAdapters(config, { maxLoras, maxLoraRank }, (command) => process.send(command));
    this.#source = new TokenSource(room.vocabSize, parts.constraints);
    this.#masked = new MaskedRows(
      new RowMasks(room.vocabSize, MASK_SLOTS),
      (row, finish) => this.#end(row, finish),
      () => this.#flush(),
    );
    const { vocabSize, positionsPerBlock } = room;
    this.info = {
      ...{ vocabSize, positionsPerBlock, linkSize: positionsPerBlock, maxModelLen: maxModelLen(room) },
      ...{ cacheTokens: room.numBlocks * positionsPerBlock, policy: options.policy, maxLoras, maxLoraRank },
    };
    const stallMs = parts.stallMs ?? STALL_MS;
    this.#watch = setInterval(() => this.#checkProgress(stallMs), Math.min(1000, stallMs));
    process.follow(
      (frame) => this.#receive(frame),
      (error) => {
        if (this.#closed) return;
        this.#closed = true;
        clearInterval(this.#watch);
        for (const row of this.#rows.all()) this.#rows.end(row);
        onCrash(error);
      },
    );
  }

  send(command: Command): void {
    switch (command.type) {
      case "generate":
        this.#submit(command.handle, command.request);
        break;
      case "stop":
        for (const row of this.#rows.of(command.handle)) if (row.index === command.index) this.#drop(row);
        break;
      case "abort":
        for (const row of this.#rows.of(command.handle)) this.#drop(row);
        break;
      case "loadAdapter":
        answer(this.#deliver, command.call, this.loadAdapter(command.folder));
        break;
      case "unloadAdapter":
        answer(
          this.#deliver,
          command.call,
          this.unloadAdapter(command.version).then(() => null),
        );
        break;
      default:
        command satisfies never;
    }
    this.#flush();
  }

  async loadAdapter(folder: string): Promise<AdapterInfo> {
    const { version, rank } = await this.#adapters.load(folder);
    return { version, rank };
  }

  async unloadAdapter(version: string): Promise<void> {
    if (this.#rows.usesAdapter(version)) throw new Error(`adapter ${version} still has requests`);
    await this.#adapters.unload(version);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#watch);
    for (const row of this.#rows.all()) this.#drop(row);
    await this.#process.kill();
  }

  checkIntegrity(): void {
    this.#rows.checkIntegrity();
    if (this.#rows.size === 0) this.#masked.checkIdle();
  }

  // What comes from the caller.

  #submit(handle: number, request: GenerateRequest): void {
    const problem = refusal(request, this.#room);
    const slot = request.adapter === null ? 0 : this.#adapters.slotOf(request.adapter);
    if (problem !== null || slot === null) {
      const unloaded = { ...errorFinish(`adapter ${request.adapter} is not loaded`), fault: "unloaded" } as const;
      const finish = problem === null ? unloaded : errorFinish(problem);
      for (let index = 0; index < request.n; index++) {
        this.#rows.emit(handle, { type: "tokens", index, tokens: [], finish });
      }
      return;
    }
    if (this.#rows.size === 0) this.#lastStepAt = performance.now();
    const rows = this.#open(handle, request);
    if (rows.length === 0) return;
    const rank = rankOf(request.priority, performance.now(), this.#options);
    this.#process.send(...addFrame(rows, slot, { rank, arrival: this.#arrivals, vocabSize: this.#room.vocabSize }));
    this.#arrivals += request.n;
    this.#updateWaiting();
    for (const row of rows) if (row.masked) this.#masked.tell(row);
  }

  /** The rows of a request. One whose constraint cannot be made has ended already. */
  #open(handle: number, request: GenerateRequest): Row[] {
    const rows = this.#rows.open(handle, request);
    for (const row of rows) {
      try {
        this.#source.prepare(row);
      } catch (error) {
        this.#rows.emitTokens(row, [], errorFinish(error));
      }
    }
    return rows.filter((row) => this.#rows.isLive(row));
  }

  // What comes from the process.

  #receive(frame: Frame): void {
    switch (frame.type) {
      case "step":
        this.#step(frame);
        break;
      case "stats":
        this.#count(frame);
        break;
      case "prompt":
        readPrompt(frame, this.#requestOf(frame.number("request")));
        break;
      case "preferences":
        readPreferences(frame, this.#requestOf(frame.number("request")));
        break;
      case "done":
      case "failed":
        this.#adapters.receive(frame);
        break;
      default:
        throw frame.problem("is no frame of the protocol");
    }
    this.#flush();
  }

  #step(frame: Frame): void {
    this.#lastStepAt = performance.now();
    let tokens = this.#prefilled(frame);
    for (const { row: number, token, finish } of readTokens(frame)) {
      const row = this.#rowOf(frame, number);
      if (row === null) continue; // it has ended here meanwhile
      tokens += this.#take(row, token, finish, frame);
    }
    for (const { number, kind, message } of readFaults(frame)) {
      const row = this.#rowOf(frame, number);
      if (row !== null) this.#rows.emitTokens(row, [], errorFinish(faultOf(row, kind, message)));
    }
    const [decode, prefill] = [frame.number("decode"), frame.number("prefill")];
    this.#stats.addStep(tokens, { at: Date.now(), decode, prefill });
    this.#count(frame);
  }

  /** Returns how many tokens of these prompts were computed. */
  #prefilled(frame: Frame): number {
    const handles = frame.array("prefilledRequests", "u32");
    const cached = frame.array("prefilledCached", "u32", handles.length);
    const queuedMs = frame.array("prefilledQueuedMs", "f32", handles.length);
    let computed = 0;
    for (const [i, handle] of handles.entries()) {
      const request = this.#requestOf(handle);
      if (request === null) continue;
      const { promptLogprobs, preferences } = request;
      const { length } = request.request.promptTokenIds;
      request.prefilled = true;
      this.#stats.add("promptTokens", length);
      computed += length - cached[i]!;
      this.#rows.emit(handle, {
        type: "prefill",
        cachedTokens: cached[i]!,
        promptLogprobs,
        ...(preferences === null ? {} : { preferences }),
        queuedMs: queuedMs[i]!,
      });
      for (const row of this.#rows.of(handle)) if (row.doom !== null) this.#end(row, row.doom);
    }
    return computed;
  }

  /** Takes in a sampled token; returns how many tokens it has become. */
  #take(row: Row, { id, logprobs }: SampledToken, ended: number, frame: Frame): number {
    if (!row.request.prefilled) throw frame.problem(`row ${row.number} has a token before its prompt is computed`);
    const { sampling } = row.request.request;
    this.#masked.used(row);
    const tokens: SampledToken[] = [];
    let finish: Finish | null;
    try {
      finish = this.#source.take(row, { id, logprobs: sampling.logprobs === null ? null : logprobs }, tokens);
    } catch (error) {
      finish = errorFinish(error);
    }
    checkEnd(frame, row, { tokens: tokens.length, finish, ended });
    this.#stats.add("generatedTokens", tokens.length);
    this.#rows.emitTokens(row, tokens, finish);
    if (finish !== null && ended === 0) this.#stopped.push(row.number);
    if (finish === null && row.masked) {
      row.forced = tokens.slice(1).map((token) => token.id);
      this.#masked.tell(row);
    }
    return tokens.length;
  }

  /** null: it has ended here meanwhile. */
  #rowOf(frame: Frame, number: unknown): Row | null {
    const row = typeof number === "number" ? this.#rows.row(number) : undefined;
    if (row === undefined) throw frame.problem(`there is no row ${number}`);
    return row;
  }

  /** null: it has ended here meanwhile. */
  #requestOf(handle: number): GpuRequest | null {
    return this.#rows.of(handle)[0]?.request ?? null;
  }

  #count(frame: Frame): void {
    const stats = frame.object("stats");
    const number = (name: string) => frame.number(name, stats);
    this.#counted.running = number("running");
    this.#stats.set("running", this.#counted.running);
    this.#stats.set("kvUsage", number("kvUsage"));
    this.#updateWaiting();
    for (const name of ["preemptions", "prefixQueries", "prefixHits"] as const) {
      const count = number(name);
      this.#stats.add(name, count - this.#counted[name]);
      this.#counted[name] = count;
    }
  }

  // How rows end.

  /** Ends a row from here, after its prompt at the earliest. */
  #end(row: Row, finish: Finish): void {
    if (!row.request.prefilled) {
      row.doom = finish;
      return;
    }
    this.#rows.emitTokens(row, [], finish);
    this.#stopped.push(row.number);
  }

  /** Ends a row without output. */
  #drop(row: Row): void {
    this.#rows.end(row);
    this.#stopped.push(row.number);
    this.#updateWaiting();
  }

  #forget(row: Row): void {
    this.#masked.forget(row);
    try {
      row.constraint?.dispose();
    } catch (error) {
      this.#deliver({ type: "fault", error: toError(error) });
    }
  }

  // What leaves.

  #flush(): void {
    if (this.#stopped.length > 0) this.#process.send({ type: "stop", rows: this.#stopped });
    this.#stopped = [];
    const masks = this.#masked.take();
    if (masks !== null) this.#process.send({ type: "masks" }, masks);
    const outputs = this.#rows.takeOutputs();
    if (outputs.length > 0) this.#deliver({ type: "outputs", outputs });
  }

  #updateWaiting(): void {
    this.#stats.set("waiting", Math.max(0, this.#rows.size - this.#counted.running));
  }

  /** Rows that this side keeps waiting are no reason for steps. */
  #checkProgress(stallMs: number): void {
    if (this.#rows.size === this.#masked.held) this.#lastStepAt = performance.now();
    if (performance.now() - this.#lastStepAt > stallMs) this.#process.end(`no step in ${stallMs / 1000} seconds`);
  }
}
