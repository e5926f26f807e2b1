// The rows that a GPU process runs, by number and by request, and how they end here. A row is one choice; rows of a
// request share its prompt. Collects outputs until the loop takes them.

import type { SequenceConstraint } from "../../grammar/match/sequence-constraint.ts";
import type { SequenceSampler } from "../../sampling/sampler.ts";
import type { Preference, SampledToken, TokenLogprobs } from "../../sampling/token-logprobs.ts";
import type { EngineOutput, Finish, GenerateRequest } from "../contract.ts";
import type { RoutedOutput } from "../request-table.ts";

export interface GpuRequest {
  readonly handle: number;
  readonly request: GenerateRequest;
  /** Whether its prompt is computed. */
  prefilled: boolean;
  readonly promptLogprobs: (TokenLogprobs | null)[] | null;
  readonly preferences: Preference[] | null;
}

export interface Row {
  /** Never used again. */
  readonly number: number;
  readonly request: GpuRequest;
  readonly index: number;
  sampler: SequenceSampler | null;
  constraint: SequenceConstraint | null;
  /** Whether it waits for an entry at every position. */
  readonly masked: boolean;
  /** Forced tokens that the process does not know yet. */
  forced: readonly number[];
  /** It ends as soon as its prompt is computed: what was asked about the prompt comes first. */
  doom: Finish | null;
}

export class RowTable {
  /** Live rows. */
  readonly #rows = new Map<number, Row>();
  /** The live rows of each request, by handle. */
  readonly #requests = new Map<number, Row[]>();
  readonly #onEnd: (row: Row) => void;
  #lastNumber = 0;
  #outputs: RoutedOutput[] = [];

  /** `onEnd`: called for every row, whatever ends it. */
  constructor(onEnd: (row: Row) => void) {
    this.#onEnd = onEnd;
  }

  get size(): number {
    return this.#rows.size;
  }

  open(handle: number, request: GenerateRequest): Row[] {
    const { sampling, grammar, promptTokenIds, legalSets } = request;
    const masked = grammar !== null || sampling.thinking !== null || sampling.badWords.some((word) => word.length > 1);
    const state: GpuRequest = {
      ...{ handle, request, prefilled: false },
      promptLogprobs: sampling.promptLogprobs === null ? null : new Array(promptTokenIds.length).fill(null),
      preferences: legalSets === null ? null : [],
    };
    const rows = Array.from({ length: request.n }, (_, index): Row => {
      const number = ++this.#lastNumber;
      return { number, request: state, index, sampler: null, constraint: null, masked, forced: [], doom: null };
    });
    this.#requests.set(handle, rows);
    for (const row of rows) this.#rows.set(row.number, row);
    return rows;
  }

  /** null: it has ended. undefined: there was never such a row. */
  row(number: number): Row | null | undefined {
    return this.#rows.get(number) ?? (number <= this.#lastNumber ? null : undefined);
  }

  /** Live rows of a request; none when it has ended. */
  of(handle: number): readonly Row[] {
    return this.#requests.get(handle) ?? [];
  }

  all(): Row[] {
    return [...this.#rows.values()];
  }

  isLive(row: Row): boolean {
    return this.#rows.has(row.number);
  }

  usesAdapter(version: string): boolean {
    for (const { request } of this.#rows.values()) if (request.request.adapter === version) return true;
    return false;
  }

  emit(handle: number, output: EngineOutput): void {
    this.#outputs.push({ handle, output });
  }

  /** New tokens of a row. A finish ends it. */
  emitTokens(row: Row, tokens: SampledToken[], finish: Finish | null): void {
    this.emit(row.request.handle, { type: "tokens", index: row.index, tokens, finish });
    if (finish !== null) this.end(row);
  }

  /** Ends a row without output. */
  end(row: Row): void {
    const { handle } = row.request;
    this.#rows.delete(row.number);
    const left = this.of(handle).filter((other) => other !== row);
    if (left.length === 0) this.#requests.delete(handle);
    else this.#requests.set(handle, left);
    this.#onEnd(row);
  }

  takeOutputs(): RoutedOutput[] {
    const outputs = this.#outputs;
    this.#outputs = [];
    return outputs;
  }

  checkIntegrity(): void {
    const listed = [...this.#requests.values()].flat();
    if (listed.length !== this.size || !listed.every((row) => this.isLive(row))) {
      throw new Error(`${this.size} rows, ${listed.length} of requests`);
    }
  }
}
