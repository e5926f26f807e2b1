// Asks: a new question, an edited one, the same once more, and what follows after tool calls.
import { batch } from "@preact/signals";
import { facts } from "../server-facts.ts";
import { messageOf } from "../session.ts";
import { localProblem } from "./constraint.ts";
import { callTool } from "./mcp.ts";
import type { Message } from "./message.ts";
import { type Exchange, snapshot } from "./reply.ts";
import { chatBody } from "./request.ts";
import { runChat } from "./run.ts";
import { stop, work } from "./running.ts";
import { constraintOf } from "./settings.ts";
import {
  chat,
  columnModels,
  draft,
  editing,
  lastSeed,
  pick,
  picked,
  problem,
  put,
  settings,
  sides,
  update,
  write,
} from "./state.ts";
import { resultsOf, withCallsInText } from "./tools.ts";
import {
  type Answers,
  type Column,
  endOf,
  messagesOf,
  newId,
  placeKey,
  placeOf,
  type Question,
  type Round,
  replyOf,
  type TurnId,
} from "./tree.ts";

/** One request to come. */
interface Wanted {
  column: number;
  question: Question;
  before: readonly Round[];
}

/** Sends what stands in the box: to every column, or in the place of the question that is edited. */
export function send(): Promise<void> {
  const messages: Message[] = [{ role: "user", content: draft.value }];
  const edited = editing.value?.question;
  return ask(edited === undefined ? following(messages) : replacing(edited, messages), () => {
    draft.value = editing.value?.draft ?? "";
    editing.value = null;
  });
}

/** The same question for all columns whose conversations are the same. */
function following(messages: readonly Message[]): Wanted[] {
  const questions = new Map<string, Question>();
  return sides.value.map(({ rounds }, column) => {
    const first = sides.value[0]!.rounds;
    const before = rounds.at(-1)?.answers === null ? first : rounds;
    const after = endOf(before);
    const question = questions.get(placeKey(after)) ?? { kind: "question", id: newId(), after, messages };
    questions.set(placeKey(after), question);
    return { column, question, before };
  });
}

function replacing(id: TurnId, messages: readonly Message[]): Wanted[] {
  const old = chat.value.turns.get(id) as Question;
  const question: Question = { kind: "question", id: newId(), after: old.after, messages };
  return sides.value.flatMap(({ rounds }, column) => {
    const at = rounds.findIndex((round) => round.question.id === id);
    return at < 0 ? [] : [{ column, question, before: rounds.slice(0, at) }];
  });
}

/** Asks the newest question of every column again, beside the answers that there are. */
export function regenerate(): Promise<void> {
  return ask(
    sides.value.flatMap(({ rounds }, column) =>
      rounds.length === 0 ? [] : [{ column, question: rounds.at(-1)!.question, before: rounds.slice(0, -1) }],
    ),
  );
}

/** Goes on after tool calls, in one column. */
export function answerCalls(column: number, round: Round, results: readonly string[]): Promise<void> {
  return ask(wantedAfterCalls(column, round, results));
}

function wantedAfterCalls(column: number, round: Round, results: readonly string[]): Wanted[] {
  const calls = replyOf(round)!.toolCalls;
  const messages = calls.map(({ id }, i): Message => ({ role: "tool", tool_call_id: id, content: results[i]! }));
  const { rounds } = sides.value[column]!;
  const at = rounds.findIndex(({ question }) => question.id === round.question.id);
  const question: Question = { kind: "question", id: newId(), after: placeOf(round), messages };
  return [{ column, question, before: rounds.slice(0, at + 1) }];
}

/** `onSent`: nothing was wrong, and the requests are on their way. */
async function ask(wanted: readonly Wanted[], onSent: () => void = () => {}): Promise<void> {
  const now = settings.value;
  const constraint = constraintOf(now);
  const wrong = localProblem(now.output, constraint);
  if (wrong !== null || wanted.length === 0) {
    problem.value = wrong?.message ?? null;
    return;
  }
  const seed = now.seed ?? randomSeed();
  await stop();
  let made: { column: number; answers: Answers }[];
  try {
    made = wanted.map(({ column, question, before }) => {
      const messages = [...messagesOf(before, chat.value.startsAt), ...question.messages];
      const own = now.isCoupled ? seed : seed + column * 1000;
      const body = chatBody(now, columnModels.value[column]!, messages, own);
      const exchange: Exchange = { ...WAITING, body };
      const sent = { output: now.output, constraint };
      return { column, answers: { kind: "answers", id: newId(), to: question.id, exchange, sent } };
    });
  } catch (error) {
    problem.value = messageOf(error);
    return;
  }
  batch(() => {
    problem.value = null;
    lastSeed.value = seed;
    const turns = new Map(chat.value.turns);
    const columns: Column[] = sides.value.map(({ column }) => column);
    for (const [i, { column, answers }] of made.entries()) {
      const { question, before } = wanted[i]!;
      turns.set(question.id, question);
      turns.set(answers.id, answers);
      const way = Object.fromEntries(before.flatMap((round) => forksOf(round)));
      const picks = { [placeKey(question.after)]: question.id, [question.id]: `${answers.id}:0` };
      columns[column] = { picks: { ...columns[column]?.picks, ...way, ...picks } };
    }
    onSent(); // before the chat is kept: what is sent is no draft any more
    update({ turns, columns, at: Date.now() }, { answers: made.map(({ answers }) => answers.id) });
  });
  await work((signal) => Promise.all(made.map(({ column, answers }) => run(column, answers, signal, now.toolTurns))));
}

const WAITING: Omit<Exchange, "body"> = {
  state: "waiting",
  error: null,
  model: null,
  promptIds: [],
  cachedTokens: null,
  replies: [],
  startedAt: 0,
};

/** What a column picked to get to a round and its answer. */
function forksOf({ question, answers, reply }: Round): [string, string][] {
  const fork: [string, string] = [placeKey(question.after), question.id];
  return answers === null ? [fork] : [fork, [question.id, placeKey({ turn: answers.id, reply })]];
}

async function run(column: number, answers: Answers, signal: AbortSignal, turnsLeft: number): Promise<void> {
  const { id, exchange } = answers;
  const end = snapshot(await runChat(exchange.body, (now) => put(id, snapshot(now), false), signal));
  const isReadHere = exchange.body.tools !== undefined && facts.value?.parsers.auto_tool_choice === false;
  if (isReadHere) end.replies = end.replies.map(withCallsInText);
  put(id, end, true);
  const calls = end.replies[0]?.toolCalls ?? [];
  if (end.state !== "done" || calls.length === 0 || turnsLeft === 0) return;
  let results: string[] | null;
  try {
    results = await resultsOf(calls, settings.value.tools, (tool, call) => callTool(tool, call, signal));
  } catch (error) {
    if (!signal.aborted) problem.value = messageOf(error);
    return;
  }
  if (signal.aborted) return;
  const round = sides.value[column]?.rounds.find((one) => one.answers?.id === id);
  if (results === null || round === undefined) return;
  const [{ question, before }] = wantedAfterCalls(column, round, results) as [Wanted];
  const messages = [...messagesOf(before, chat.value.startsAt), ...question.messages];
  const next: Answers = {
    ...{ kind: "answers", id: newId(), to: question.id, sent: answers.sent },
    exchange: { ...WAITING, body: { ...exchange.body, messages } },
  };
  const turns = new Map(chat.value.turns).set(question.id, question).set(next.id, next);
  const columns = picked(column, { [placeKey(question.after)]: question.id, [question.id]: `${next.id}:0` });
  update({ turns, columns }, { answers: [next.id] });
  await run(column, next, signal, turnsLeft - 1);
}

/** Writes a question anew in the box. */
export function edit(question: Question): void {
  const waiting = editing.value?.draft ?? draft.value;
  editing.value = { question: question.id, draft: waiting };
  draft.value = question.messages[0]?.content ?? "";
}

export function endEditing(): void {
  if (editing.value === null) return;
  const { draft: waiting } = editing.value;
  editing.value = null;
  write(waiting);
}

/** Goes on with another reply. */
export function choose(column: number, round: Round, reply: number): void {
  pick(column, round.question.id, placeKey({ turn: round.answers!.id, reply }));
}

/** Small enough to read out, and exact in JSON. */
function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]! % 1_000_000;
}
