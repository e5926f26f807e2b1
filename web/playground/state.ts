// The state of the playground: its settings, and one column per model with a conversation of its own. Settings live in the
// address, which also names the conversation (chat-state.ts).
import { batch, computed, signal } from "@preact/signals";
import { models } from "../models.ts";
import { messageOf } from "../session.ts";
import { localProblem } from "./constraint.ts";
import { branchOff, type Exchange, isRunning, snapshot } from "./reply.ts";
import { chatBody, continuationBody, type Message } from "./request.ts";
import { runChat, runContinuation } from "./run.ts";
import { score } from "./scoring.ts";
import { DEFAULTS, type Settings } from "./settings.ts";
import type { Alternative, WireEntry } from "./tokens.ts";

export interface Column {
  model: string;
  /** What was said before the exchange. */
  turns: readonly Message[];
  /** The newest question and its answers; null before the first. */
  exchange: Exchange | null;
  /** The answer that the conversation goes on with. */
  chosen: number;
  /** The settings of the exchange. */
  sent: Settings;
}

export const settings = signal<Settings>(DEFAULTS);
export const columns = signal<readonly Column[]>([]);
/** What stands in the box. The address keeps it, or what was asked last. */
export const draft = signal("");
/** Why nothing was sent; null if all is well. */
export const problem = signal<string | null>(null);
/** The seed of the newest question. */
export const lastSeed = signal<number | null>(null);

export const isBusy = computed(() => columns.value.some(({ exchange }) => isRunning(exchange)));
export const columnModels = computed(() => {
  const base = models.value[0]?.id;
  if (settings.value.models.length > 0) return settings.value.models;
  return base === undefined ? [] : [base];
});

let stopper = new AbortController();

export function change(part: Partial<Settings>): void {
  settings.value = { ...settings.value, ...part };
}

/** Asks every column the same, with what each of them said before. */
export function send(prompt: string): Promise<void> {
  const before = columnModels.value.map((model, i) => {
    const column = columns.value[i] ?? columns.value[0]; // a new column joins the conversation of the first
    return {
      model,
      turns: column === undefined ? [] : turnsAfter(column),
      exchange: null,
      chosen: 0,
      sent: settings.value,
    };
  });
  change({ prompt });
  draft.value = "";
  return ask(before, prompt);
}

/** Asks the newest question again. */
export function regenerate(): Promise<void> {
  const question = questionOf(columns.value[0]);
  const again = columnModels.value.map((model, i) => {
    const turns = (columns.value[i] ?? columns.value[0])?.turns ?? [];
    return { model, turns, exchange: null, chosen: 0, sent: settings.value };
  });
  return ask(again, question ?? settings.value.prompt);
}

export function stop(): void {
  stopper.abort();
}

export function clear(): void {
  stop();
  batch(() => {
    change({ chat: "" });
    columns.value = [];
    problem.value = null;
  });
}

async function ask(next: readonly Column[], prompt: string): Promise<void> {
  const wrong = localProblem(settings.value.output, settings.value.constraint);
  if (wrong !== null) {
    problem.value = wrong.message;
    return;
  }
  stop();
  stopper = new AbortController();
  const { signal: stopped } = stopper;
  const seed = settings.value.seed ?? randomSeed();
  const question: Message = { role: "user", content: prompt };
  try {
    const bodies = next.map(({ model, turns }, i) =>
      chatBody(settings.value, model, [...turns, question], settings.value.isCoupled ? seed : seed + i * 1000),
    );
    batch(() => {
      problem.value = null;
      lastSeed.value = seed;
      columns.value = next;
    });
    const show = (i: number) => (exchange: Exchange) => {
      if (!stopped.aborted || exchange.state === "stopped") put(i, { exchange: snapshot(exchange) });
    };
    await Promise.all(bodies.map((body, i) => runChat(body, show(i), stopped)));
  } catch (error) {
    problem.value = messageOf(error);
  }
}

/** Goes on from a token's alternative, as a new card of the column. */
export async function continueFrom(column: number, of: number, at: number, alternative: Alternative): Promise<void> {
  const { exchange } = columns.value[column]!;
  if (exchange === null) return;
  const model = servedName(columns.value[column]!);
  const entry: WireEntry = {
    token: `token_id:${alternative.id}`,
    logprob: alternative.logprob,
    bytes: [...new TextEncoder().encode(alternative.text)],
    top_logprobs: exchange.replies[of]!.entries[at]?.top_logprobs ?? [],
  };
  const branch = branchOff(exchange.replies[of]!, of, at, entry, alternative.id);
  const live = { ...exchange, replies: [...exchange.replies, branch], state: "streaming" as Exchange["state"] };
  const show = () => put(column, { exchange: snapshot(live) });
  show();
  stopper = new AbortController();
  const ids = [...exchange.promptIds, ...branch.tokenIds];
  try {
    await runContinuation(
      continuationBody({ ...exchange.body, model }, ids, branch.tokenIds.length),
      branch,
      show,
      stopper.signal,
    );
    const all = [...exchange.promptIds, ...branch.tokenIds];
    branch.tokens = await score(model, all, exchange.promptIds.length, settings.value.alternatives);
    branch.entries = branch.tokens.map(({ id, logprob }) => ({ token: `token_id:${id}`, logprob, bytes: null }));
  } catch (error) {
    problem.value = messageOf(error);
  }
  live.state = exchange.state;
  show();
}

export function put(index: number, part: Partial<Column>): void {
  columns.value = columns.value.map((column, i) => (i === index ? { ...column, ...part } : column));
}

/** The name of what answered, with its step; the column's name before it has. */
export function servedName({ model, exchange }: Column): string {
  return exchange?.model ?? model;
}

/** What a column's user said last; null before the first question. */
export function questionOf(column: Column | undefined): string | null {
  const messages = (column?.exchange?.body.messages ?? []) as Message[];
  return messages.at(-1)?.content ?? null;
}

/** The conversation up to now, with the chosen answer. */
function turnsAfter(column: Column): readonly Message[] {
  const question = questionOf(column);
  const answer = column.exchange?.replies[column.chosen]?.content;
  if (question === null || answer === undefined || answer === "") return column.turns;
  return [...column.turns, { role: "user", content: question }, { role: "assistant", content: answer }];
}

/** Small enough to read out, and exact in JSON. */
function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]! % 1_000_000;
}
