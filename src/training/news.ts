// News of all jobs, steps and models for those who watch: one look at the store for all of them, every few seconds and
// soon after something happened here or another server told of something. The store is the truth; hints only save time.
//
// A watcher may be told something twice, never not at all: numbers and clocks of several servers are not in order, so
// each look goes a little further back than the last one, and leaves out what it has told already.

import type { Owner } from "../store/tables/models.ts";
import type { JobChange, NewEvent, NewStep } from "../store/tables/news.ts";
import type { TrainingContext } from "./context.ts";
import type { JobJournal } from "./jobs/job-journal.ts";

export type News = { owner: string } & (
  | { kind: "job"; job: JobChange }
  | { kind: "job_event"; jobId: string; event: NewEvent["event"] }
  | { kind: "step"; step: NewStep }
  | { kind: "model"; id: string; deleted: boolean }
);

/** `cursor`: where to go on after all of it. */
export type WatchNews = (news: readonly News[], cursor: string) => void;

export interface Missed {
  /** What happened since the watcher's cursor; null = too much to tell, so whoever watches looks for itself. */
  news: readonly News[] | null;
  cursor: string;
  /** Begins to tell what happens from here on. */
  start(): void;
  stop(): void;
}

/** A transaction that has a number commits within this time. */
const COMMIT_MS = 15_000;
/** Clocks of servers differ by less, commits included. */
const CLOCK_MS = 60_000;
/** Between two looks, however much happens. Pages show news at most as often. */
const SHORTEST_MS = 500;
/** Rows of one statement. */
const PAGE = 1_000;
/** A watcher who missed more than this, or was gone for longer, looks for itself. */
const MOST_MISSED = 10_000;
const LONGEST_AWAY_MS = 3600_000;

const CURSOR = /^(\d{1,15})-(\d{1,15})$/;

type NewsContext = Pick<TrainingContext, "newsTable" | "times" | "server" | "log">;

export class NewsFeed {
  readonly #context: NewsContext;
  readonly #journal: JobJournal;
  readonly #watchers = new Map<WatchNews, Owner>();
  #look: Look | null = null;
  #timer: NodeJS.Timeout | null = null;
  #soon: NodeJS.Timeout | null = null;
  #stopListening: (() => void) | null = null;
  #looking: Promise<void> = Promise.resolve();

  constructor(context: NewsContext, journal: JobJournal) {
    this.#context = context;
    this.#journal = journal;
  }

  /**
   * Tells `watcher` what happens to what an owner has (null = everything), until `stop` is called. `after`: a cursor, or
   * null for whoever comes for the first time.
   */
  async watch(owner: Owner, after: string | null, watcher: WatchNews): Promise<Missed> {
    /** What happens while the past is read; null = it has been. */
    let held: Parameters<WatchNews>[] | null = [];
    const hear: WatchNews = (...news) => (held === null ? watcher(...news) : void held.push(news));
    this.#watchers.set(hear, owner);
    const stop = () => {
      this.#watchers.delete(hear);
      if (this.#watchers.size === 0) this.#rest();
    };
    try {
      const { cursor } = await this.#begin();
      const start = () => {
        for (const news of held ?? []) watcher(...news);
        held = null;
      };
      return { news: await this.#since(after, owner), cursor, start, stop };
    } catch (error) {
      stop();
      throw error;
    }
  }

  /** Waits for a look that has begun. */
  async close(): Promise<void> {
    this.#watchers.clear();
    this.#rest();
    await this.#looking;
  }

  async #begin(): Promise<Look> {
    const look = this.#look ?? new Look(this.#context);
    if (this.#look === null) {
      this.#look = look;
      this.#timer = setInterval(() => this.#lookNow(), this.#context.times.poll);
      this.#timer.unref();
      this.#stopListening = this.#journal.watchAll(() => this.#lookSoon());
      // a failure is told to those who wait for it
      this.#looking = look.begun.catch(() => {});
    }
    await look.begun;
    return look;
  }

  #rest(): void {
    if (this.#timer) clearInterval(this.#timer);
    if (this.#soon) clearTimeout(this.#soon);
    this.#stopListening?.();
    this.#timer = this.#soon = this.#stopListening = this.#look = null;
  }

  #lookSoon(): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = null;
      this.#lookNow();
    }, SHORTEST_MS).unref();
  }

  /** One look follows the other. A failure is logged; the next look finds what this one missed. */
  #lookNow(): void {
    const look = this.#look;
    this.#looking = this.#looking
      .then(async () => {
        if (look === null || look !== this.#look) return;
        const news = await look.next();
        if (news.length > 0) this.#tell(news, look.cursor);
      })
      .catch((error: unknown) => this.#context.log.warn("news cannot be read from the store", { error }));
  }

  #tell(news: readonly News[], cursor: string): void {
    for (const [watcher, owner] of [...this.#watchers]) {
      const own = owner === null ? news : news.filter((item) => item.owner === owner);
      if (own.length > 0) watcher(own, cursor);
    }
  }

  async #since(cursor: string | null, owner: Owner): Promise<News[] | null> {
    if (cursor === null) return [];
    const { newsTable } = this.#context;
    const [, seq, time] = CURSOR.exec(cursor) ?? [];
    if (Date.now() - Number(time ?? 0) > LONGEST_AWAY_MS) return null;
    const since = new Date(Number(time) - CLOCK_MS);
    const news = [
      ...(await newsTable.deletedModels(since, owner)).map((model) => modelNews(model, true)),
      ...(await newsTable.events(Number(seq), owner, MOST_MISSED)).map(eventNews),
      ...(await newsTable.steps(since, owner, MOST_MISSED)).map(stepNews),
      ...(await newsTable.jobsSince(since, owner, MOST_MISSED)).map(jobNews),
    ];
    return news.length < MOST_MISSED ? news : null;
  }
}

/** What was told, and how far. */
class Look {
  readonly #context: NewsContext;
  readonly #overlapMs: number;
  /** Heads of the tables at past looks, oldest first. */
  #heads: { time: number; events: number; jobs: number; models: number }[] = [];
  /** When each event, step, model and deletion was told, by its key. */
  readonly #told = new Map<string, number>();
  /** What was told of jobs that may still change. */
  readonly #jobs = new Map<string, string>();
  #time = Date.now();
  /** The first look: everything up to now counts as told. */
  readonly begun: Promise<void>;

  constructor(context: NewsContext) {
    this.#context = context;
    // on a store of its own, numbers are in order
    this.#overlapMs = context.server.alone ? 0 : COMMIT_MS;
    this.begun = this.#begin();
  }

  /** Everything up to here was told. */
  get cursor(): string {
    return `${this.#heads[0]?.events ?? 0}-${this.#time}`;
  }

  async #begin(): Promise<void> {
    const { newsTable } = this.#context;
    this.#time = Date.now();
    this.#heads = [{ time: this.#time, ...(await newsTable.heads()) }];
    for (const job of await newsTable.jobs(this.#heads[0]!.jobs, [])) this.#jobs.set(job.id, stateOf(job));
    const steps = await newsTable.steps(this.#since(), null, MOST_MISSED);
    for (const { id } of steps) this.#told.set(`step ${id}`, this.#time);
    for (const { id } of await newsTable.deletedModels(this.#since(), null)) this.#told.set(`gone ${id}`, this.#time);
  }

  async next(): Promise<News[]> {
    const { newsTable } = this.#context;
    const now = Date.now();
    const [from] = this.#heads;
    const heads = await newsTable.heads();
    const events = (await this.#events(from!.events)).filter((one) => this.#isNew(one.event.id, now));
    const touched = new Set([...events.map(({ jobId }) => jobId), ...this.#jobs.keys()]);
    const jobs = (await newsTable.jobs(from!.jobs, [...touched])).filter((job) => this.#hasChanged(job));
    const steps = (await newsTable.steps(this.#since(), null, MOST_MISSED)).filter(({ id }) =>
      this.#isNew(`step ${id}`, now),
    );
    const models = (await newsTable.models(from!.models)).filter(({ id }) => this.#isNew(`model ${id}`, now));
    const gone = (await newsTable.deletedModels(this.#since(), null)).filter(({ id }) =>
      this.#isNew(`gone ${id}`, now),
    );
    this.#advance({ ...heads, time: now });
    return [
      ...models.map((model) => modelNews(model, false)),
      ...events.map(eventNews),
      ...steps.map(stepNews),
      ...jobs.map(jobNews),
      ...gone.map((model) => modelNews(model, true)),
    ];
  }

  async #events(after: number): Promise<NewEvent[]> {
    const events: NewEvent[] = [];
    for (;;) {
      const page = await this.#context.newsTable.events(events.at(-1)?.seq ?? after, null, PAGE);
      events.push(...page);
      if (page.length < PAGE) return events;
    }
  }

  #since(): Date {
    return new Date(this.#time - CLOCK_MS);
  }

  #isNew(key: string, now: number): boolean {
    if (this.#told.has(key)) return false;
    this.#told.set(key, now);
    return true;
  }

  #hasChanged(job: JobChange): boolean {
    const state = stateOf(job);
    const isOpen = job.status === "RUNNING";
    if (this.#jobs.get(job.id) === state) return false;
    if (!isOpen && !this.#isNew(`job ${job.id} ${state}`, Date.now())) return false;
    if (isOpen) this.#jobs.set(job.id, state);
    else this.#jobs.delete(job.id);
    return true;
  }

  #advance(head: { time: number; events: number; jobs: number; models: number }): void {
    this.#time = head.time;
    this.#heads.push(head);
    while (this.#heads.length > 1 && this.#heads[1]!.time <= head.time - this.#overlapMs) this.#heads.shift();
    for (const [key, time] of this.#told) {
      if (time > head.time - 2 * CLOCK_MS) break; // in order of time
      this.#told.delete(key);
    }
  }
}

function stateOf({ status, progress, gradientSteps, updatedAt }: JobChange): string {
  return [status, progress, gradientSteps, updatedAt].join(" ");
}

function jobNews(job: JobChange): News {
  return { kind: "job", owner: job.owner, job };
}

function eventNews({ owner, jobId, event }: NewEvent): News {
  return { kind: "job_event", owner, jobId, event };
}

function stepNews(step: NewStep): News {
  return { kind: "step", owner: step.owner, step };
}

function modelNews({ id, owner }: { id: string; owner: string }, deleted: boolean): News {
  return { kind: "model", owner, id, deleted };
}
