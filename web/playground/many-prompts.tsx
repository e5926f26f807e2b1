// Many prompts under two models, with the same seeds: a table of what each answered and where they part.
import { useSignal } from "@preact/signals";
import { number } from "../format.ts";
import { TableScroll } from "../parts/table-scroll.tsx";
import { messageOf } from "../session.ts";
import { differenceOf, type Pair, promptsIn, type Side, summaryOf } from "./coupled.ts";
import { Panel } from "./panel.tsx";
import { chatBody } from "./request.ts";
import { runChat } from "./run.ts";
import { stop, work } from "./running.ts";
import { columnModels, settings } from "./state.ts";

const AT_ONCE = 4;

export function ManyPrompts() {
  const text = useSignal("");
  const pattern = useSignal("");
  const pairs = useSignal<readonly Pair[]>([]);
  const isRunning = useSignal(false);
  const [a, b] = columnModels.value;
  const run = async (signal: AbortSignal) => {
    isRunning.value = true;
    pairs.value = promptsIn(text.value).map((prompt) => ({ prompt, a: null, b: null, error: null }));
    const put = (i: number, part: Partial<Pair>) => {
      pairs.value = pairs.value.map((pair, other) => (other === i ? { ...pair, ...part } : pair));
    };
    const jobs = pairs.value.flatMap((pair, i) =>
      (
        [
          ["a", a!],
          ["b", b!],
        ] as const
      ).map(([side, model]) => async () => {
        try {
          const said = await answer(model, pair.prompt, i, signal);
          if (!signal.aborted) put(i, { [side]: said });
        } catch (error) {
          put(i, { error: messageOf(error) });
        }
      }),
    );
    const workThrough = async () => {
      for (let job = jobs.shift(); job !== undefined && !signal.aborted; job = jobs.shift()) await job();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, workThrough));
    isRunning.value = false;
  };
  return (
    <Panel title="What did it learn?" name="many">
      {b === undefined ? (
        <p>Add a second model to compare with.</p>
      ) : (
        <>
          <p class="muted">
            Every prompt goes to both models with the same seed. They draw the same random numbers, so every difference
            is the model's.
          </p>
          <label class="stacked">
            <span>prompts, one per line</span>
            <textarea
              rows={5}
              value={text.value}
              onInput={(event) => {
                text.value = event.currentTarget.value;
              }}
            />
          </label>
          <div class="row">
            <label class="number-field">
              <span>right if it contains (regex)</span>
              <input
                value={pattern.value}
                spellcheck={false}
                onInput={(event) => {
                  pattern.value = event.currentTarget.value;
                }}
              />
            </label>
            {isRunning.value ? (
              <button type="button" class="danger" onClick={() => void stop()}>
                Stop
              </button>
            ) : (
              <button
                type="button"
                class="primary"
                disabled={promptsIn(text.value).length === 0}
                onClick={() => void work(run)}
              >
                Compare
              </button>
            )}
          </div>
          {pairs.value.length > 0 && <Results pairs={pairs.value} pattern={pattern.value} a={a!} b={b} />}
        </>
      )}
    </Panel>
  );
}

async function answer(model: string, prompt: string, index: number, signal: AbortSignal): Promise<Side> {
  const now = { ...settings.value, n: 1, tools: [] };
  const body = chatBody(now, model, [{ role: "user", content: prompt }], (now.seed ?? 0) + index);
  const { error, replies } = await runChat(body, () => {}, signal);
  if (error !== null) throw new Error(error.message);
  return { text: replies[0]!.content, tokens: replies[0]!.tokens.list() };
}

function Results({ pairs, pattern, a, b }: { pairs: readonly Pair[]; pattern: string; a: string; b: string }) {
  const { done, differing, right } = summaryOf(pairs, pattern);
  return (
    <>
      <p role="status">
        <b>
          {number(differing)} of {number(done)} answered differently.
        </b>
        {right !== null &&
          ` Right: ${right.a} by ${a}, ${right.b} by ${b}; only the first ${right.onlyA}, only the second ${right.onlyB}.`}
      </p>
      <TableScroll label="Answers">
        <table>
          <thead>
            <tr>
              <th>prompt</th>
              <th>first differs</th>
              <th>{a}</th>
              <th>{b}</th>
            </tr>
          </thead>
          <tbody>
            {pairs.map((pair, i) => (
              <tr key={i}>
                <td>{pair.prompt}</td>
                <td class="num">
                  {pair.error === null ? firstDiffers(pair) : <span class="problem">{pair.error}</span>}
                </td>
                <td>{shownSide(pair, pair.a)}</td>
                <td>{shownSide(pair, pair.b)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </TableScroll>
    </>
  );
}

function firstDiffers(pair: Pair): string {
  if (pair.a === null || pair.b === null) return "…";
  const at = differenceOf(pair);
  return at === null ? "same" : `token ${at + 1}`;
}

/** The part that both have is quiet. */
function shownSide(pair: Pair, side: Side | null) {
  if (side === null) return null;
  const at = differenceOf(pair);
  if (at === null || side.tokens.length === 0) return side.text;
  const text = (tokens: Side["tokens"]) => tokens.map((token) => token.text).join("");
  return (
    <>
      <span class="muted">{text(side.tokens.slice(0, at))}</span>
      <b>{text(side.tokens.slice(at))}</b>
    </>
  );
}
