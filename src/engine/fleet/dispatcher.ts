// Gives requests to replicas. A request waits while every replica is full, in order of rank, and for a limited time
// while no replica can take it at all.

import type { GenerateRequest } from "../contract.ts";
import type { AdapterFleet } from "./adapter-fleet.ts";
import type { Job, Member } from "./member.ts";
import { type PromptBlocks, promptBlocks } from "./prefix-index.ts";
import { choose } from "./router.ts";

export interface Place {
  member: Member;
  job: Job;
}

export interface Ticket {
  readonly request: GenerateRequest;
  /** Smaller goes first. */
  readonly rank: number;
  /** Taken only if no other has room. */
  readonly avoid: Member | null;
  /** Called once, unless the ticket is withdrawn. null: no replica was able to run it for too long. */
  readonly onPlace: (place: Place | null) => void;
}

interface Waiting extends Ticket {
  /** By block size. */
  readonly blocks: Map<number, PromptBlocks>;
  /** Since when no replica has been able to run it; null while one is. */
  stranded: number | null;
}

export interface DispatcherOptions {
  /** How long a request may wait while no replica can take it, whatever the load. */
  timeoutMs: number;
  /** Whether replicas keep what they computed for the next request. */
  prefixCaching: boolean;
}

export class Dispatcher {
  readonly #members: readonly Member[];
  readonly #adapters: Pick<AdapterFleet, "isLoaded">;
  readonly #options: DispatcherOptions;
  /** First to go first. */
  readonly #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(members: readonly Member[], adapters: Pick<AdapterFleet, "isLoaded">, options: DispatcherOptions) {
    this.#members = members;
    this.#adapters = adapters;
    this.#options = options;
  }

  /** Choices that wait. */
  get waiting(): number {
    return this.#waiting.reduce((sum, { request }) => sum + request.n, 0);
  }

  enter(ticket: Ticket): void {
    const at = this.#waiting.findLastIndex((other) => other.rank <= ticket.rank) + 1;
    this.#waiting.splice(at, 0, { ...ticket, blocks: new Map(), stranded: null });
    this.serve();
  }

  /** Does nothing if the ticket does not wait any more. */
  withdraw(onPlace: Ticket["onPlace"]): void {
    const at = this.#waiting.findIndex((ticket) => ticket.onPlace === onPlace);
    if (at < 0) return;
    this.#waiting.splice(at, 1);
    this.serve();
  }

  /** To be called when a replica has changed or a choice has ended. */
  serve(): void {
    const now = performance.now();
    for (const ticket of [...this.#waiting]) {
      const able = this.#ableToRun(ticket);
      if (able.length === 0) {
        ticket.stranded ??= now;
        if (now - ticket.stranded >= this.#options.timeoutMs) this.#answer(ticket, null);
        continue;
      }
      ticket.stranded = null;
      const place = this.#placeFor(ticket, able);
      if (place === null) break; // nobody overtakes
      this.#answer(ticket, place);
    }
    this.#wakeLater();
  }

  close(): void {
    this.#waiting.length = 0;
    clearTimeout(this.#timer);
  }

  #answer(ticket: Waiting, place: Place | null): void {
    this.#waiting.splice(this.#waiting.indexOf(ticket), 1);
    ticket.onPlace(place);
  }

  /** The replicas that could run it, now or when they have room. */
  #ableToRun({ request }: Waiting): Member[] {
    const length = request.promptTokenIds.length + request.sampling.maxTokens;
    return this.#members.filter((member) => member.available && length <= member.replica.info!.maxModelLen);
  }

  #placeFor(ticket: Waiting, able: readonly Member[]): Place | null {
    const { request, avoid } = ticket;
    const { promptTokenIds, adapter, n, sampling } = request;
    const free = able.filter((member) => member.hasRoom(n));
    const others = free.filter((member) => member !== avoid);
    const readsCache = this.#options.prefixCaching && sampling.promptLogprobs === null;
    const candidates = (others.length > 0 ? others : free).map((member) => {
      const hasAdapter = adapter === null || this.#adapters.isLoaded(member, adapter);
      return member.candidate(promptTokenIds.length, readsCache ? blocksOf(ticket, member) : null, hasAdapter);
    });
    if (candidates.length === 0) return null;
    const { member, uncomputed } = choose(candidates, blocksOf(ticket, candidates[0]!.member).first)!;
    return { member, job: member.begin(n, uncomputed, blocksOf(ticket, member)) };
  }

  /** For the end of a replica's pause, and for the next request that will have waited too long. */
  #wakeLater(): void {
    clearTimeout(this.#timer);
    if (this.#waiting.length === 0) return;
    const now = performance.now();
    let wait = Number.POSITIVE_INFINITY;
    for (const { pauseLeft } of this.#members) if (pauseLeft > 0) wait = Math.min(wait, pauseLeft);
    for (const { stranded } of this.#waiting) {
      if (stranded !== null) wait = Math.min(wait, stranded + this.#options.timeoutMs - now);
    }
    if (wait < Number.POSITIVE_INFINITY) this.#timer = setTimeout(() => this.serve(), Math.max(1, Math.ceil(wait)));
  }
}

function blocksOf({ request, blocks }: Waiting, { replica }: Member): PromptBlocks {
  const size = replica.info!.linkSize;
  const known = blocks.get(size);
  if (known !== undefined) return known;
  const root = JSON.stringify([request.adapter, request.cacheSalt]);
  const made = promptBlocks(root, request.promptTokenIds, size);
  blocks.set(size, made);
  return made;
}
