// How full the context is, and the ways out when it is full: leave out the oldest turns, or start anew.
import { number } from "../format.ts";
import { useLocation } from "../router.ts";
import { facts } from "../server-facts.ts";
import { regenerate } from "./asking.ts";
import { newChat } from "./chat-actions.ts";
import type { Message } from "./message.ts";
import { chat, isBusy, newest, type Side, sides, update } from "./state.ts";
import type { Round } from "./tree.ts";

/** Share of the context from which on the page warns. */
const NEARLY_FULL = 0.85;
/** Share that is left after the oldest turns are left out. */
const LEFT = 0.5;
/** A guess where the server has not counted. */
const CHARACTERS_PER_TOKEN = 3;

export function ContextFill() {
  const most = facts.value?.limits.max_model_len;
  if (most === undefined) return null;
  const used = Math.min(most, Math.max(0, ...sides.value.map(usedBy)));
  return (
    <div class="context-fill" title="How much of what the model can see at once is used">
      <label for="context-meter">Context</label>
      <meter id="context-meter" min={0} max={most} high={most * NEARLY_FULL} value={used} />
      <span class="num muted">
        {number(used)} of {number(most)}
      </span>
    </div>
  );
}

export function ContextNotice() {
  const location = useLocation();
  const most = facts.value?.limits.max_model_len;
  if (most === undefined || isBusy.value) return null;
  const isRefused = newest.value.some((one) => /maximum context length/.test(one?.exchange.error?.message ?? ""));
  const used = Math.max(0, ...sides.value.map(usedBy));
  if (!isRefused && used < most * NEARLY_FULL) return null;
  const canLeaveOut = sentRounds(sides.value[0]!).length > 1;
  const leave = () => {
    leaveOutOldest(most);
    if (isRefused) void regenerate();
  };
  const start = async () => location.route(`/?chat=${await newChat()}`);
  return (
    <p class="notice" role="status">
      {isRefused ? "The conversation no longer fits into the context." : "The context is nearly full."} The model sees
      at most {number(most)} tokens at once.{" "}
      <button type="button" class="small" disabled={!canLeaveOut} onClick={leave}>
        Leave out the oldest turns
      </button>{" "}
      <button type="button" class="small" onClick={() => void start()}>
        Start anew
      </button>
    </p>
  );
}

/** Tokens of the prompt and the answer. */
function usedBy(side: Side): number {
  const { rounds } = side;
  const last = rounds.at(-1);
  const prompt = last?.answers?.exchange.promptIds.length ?? 0;
  const lengths = last?.answers?.exchange.replies.map(({ tokenIds }) => tokenIds.length) ?? [];
  if (prompt > 0) return prompt + Math.max(0, ...lengths);
  const density = densityOf(side);
  return Math.round(sentRounds(side).reduce((sum, round) => sum + guess(round, density), 0));
}

function sentRounds({ rounds }: Side): readonly Round[] {
  const from = rounds.findIndex(({ question }) => question.id === chat.value.startsAt);
  return rounds.slice(Math.max(0, from));
}

/** Tokens per character, by what the server has counted last in this column. */
function densityOf({ rounds }: Side): number {
  const counted = rounds.findLast(({ answers }) => (answers?.exchange.promptIds.length ?? 0) > 0)?.answers?.exchange;
  if (counted === undefined) return 1 / CHARACTERS_PER_TOKEN;
  const messages = (counted.body.messages ?? []) as readonly Message[];
  const characters = messages.reduce((sum, { content }) => sum + (content?.length ?? 0), 0);
  return counted.promptIds.length / Math.max(1, characters);
}

function guess({ question, answers, reply }: Round, density: number): number {
  const asked = question.messages.reduce((sum, { content }) => sum + (content?.length ?? 0), 0);
  const said = answers?.exchange.replies[reply];
  return Math.ceil(asked * density) + (said === undefined ? 0 : said.tokenIds.length || said.content.length * density);
}

function leaveOutOldest(most: number): void {
  const side = sides.value[0]!;
  const rounds = sentRounds(side);
  const density = densityOf(side);
  let from = rounds.length - 1;
  let sum = guess(rounds[from]!, density);
  while (from > 1 && sum + guess(rounds[from - 1]!, density) <= most * LEFT) {
    from -= 1;
    sum += guess(rounds[from]!, density);
  }
  // results of tools stay with their calls
  while (from < rounds.length - 1 && rounds[from]!.question.messages[0]?.role === "tool") from += 1;
  update({ startsAt: rounds[from]!.question.id });
}
