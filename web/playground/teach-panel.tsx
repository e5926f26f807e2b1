// Teach: rate the answers of a column, look at what would be trained, train, and see both steps answer.
import { useSignal } from "@preact/signals";
import { number, percent } from "../format.ts";
import { models } from "../models.ts";
import { Choice } from "../parts/choice.tsx";
import type { Message } from "./message.ts";
import { NumberField } from "./number-field.tsx";
import { Panel } from "./panel.tsx";
import { RatedAnswers } from "./rated-answers.tsx";
import { asChoice, isRunning } from "./reply.ts";
import { change, type Newest, newest, servedName, settings } from "./state.ts";
import {
  firstOfSame,
  groupOf,
  type Places,
  RATINGS,
  type Rating,
  rewardsByOrder,
  rewardsByStars,
  whyUseless,
} from "./teach.ts";
import { type Lesson, lesson, look, train } from "./teach-run.ts";

const RATING_NAMES: Record<Rating, string> = { order: "in an order", stars: "with stars" };
const LEARNING_RATE = 5e-4;
const ALL_THE_SAME = "All answers are the same: there is nothing to learn.";

interface Ratings {
  /** The answers that they are about. */
  turn: string;
  places: Places;
  stars: readonly number[];
}

export function TeachPanel() {
  const rating = useSignal<Rating>("order");
  const given = useSignal<Ratings>({ turn: "", places: [], stars: [] });
  const learningRate = useSignal(LEARNING_RATE);
  const typedName = useSignal<string | null>(null);
  const chosenColumn = useSignal<number | null>(null);
  const columns = newest.value;
  const index = chosenColumn.value !== null && columns[chosenColumn.value] ? chosenColumn.value : newestStep(columns);
  const column = columns[index] ?? null;
  if (column === null || column.exchange.replies.length < 2) return <FirstAsk />;
  const { exchange, turn } = column;
  const { replies } = exchange;
  const isSame = given.value.turn === turn.id;
  const places = isSame ? given.value.places : [];
  const stars = replies.map((_reply, i) => (isSame ? (given.value.stars[i] ?? 0) : 0));
  const firsts = firstOfSame(replies.map(({ content }) => content));
  const own = rating.value === "order" ? rewardsByOrder(places, replies.length) : rewardsByStars(stars);
  const rewards = firsts.map((first) => own[first] ?? null);
  const name = typedName.value ?? proposedName(column.model);
  const useless = new Set(firsts).size === 1 ? ALL_THE_SAME : whyUseless(rewards);
  const unrated = rewards.filter((reward) => reward === null).length;
  const isReady = useless === null && !isRunning(exchange) && name !== "" && lesson.value.state !== "training";
  /** The buttons keep the focus while they cannot be used. */
  const teach = (how: typeof look) => {
    if (!isReady) return;
    const { messages, tools } = exchange.body;
    const rated = replies.map(({ policyVersion }, i) => ({
      ...{ choice: asChoice(exchange, i), reward: rewards[i]!, version: versionFor(name, column, policyVersion) },
    }));
    const group = groupOf(messages as Message[], (tools as unknown[] | undefined) ?? null, rated);
    void how({ name, group, learningRate: learningRate.value, turn: turn.id, column: index });
  };
  return (
    <Panel title="Teach" name="teach">
      <div class="row">
        {columns.length > 1 && (
          <label class="number-field">
            <span>answers of</span>
            <select
              value={index}
              onChange={(event) => {
                chosenColumn.value = Number(event.currentTarget.value);
              }}
            >
              {columns.map((one, i) => (
                <option key={i} value={i} disabled={one === null} selected={i === index}>
                  {one === null ? "–" : one.model}
                </option>
              ))}
            </select>
          </label>
        )}
        <label class="number-field">
          <span>policy</span>
          <input
            class="model-name"
            value={name}
            spellcheck={false}
            onInput={(event) => {
              typedName.value = event.currentTarget.value.trim();
            }}
          />
        </label>
        <NumberField
          name="learning rate"
          title="how far one lesson goes"
          value={learningRate.value}
          least={0}
          step={1e-5}
          onChange={(value) => {
            learningRate.value = value ?? LEARNING_RATE;
          }}
        />
        <Choice
          legend="Rate"
          name="rating"
          names={RATING_NAMES}
          values={RATINGS}
          value={rating.value}
          onChange={(value) => {
            rating.value = value;
          }}
        />
      </div>
      <RatedAnswers
        {...{ replies, firsts, places, stars, rewards }}
        rating={rating.value}
        onPlaces={(next) => {
          given.value = { turn: turn.id, places: next, stars };
        }}
        onStars={(next) => {
          given.value = { turn: turn.id, places, stars: next };
        }}
      />
      <div class="row">
        <button type="button" aria-disabled={!isReady} onClick={() => teach(look)}>
          Dry run
        </button>
        <button type="button" class="primary" aria-disabled={!isReady} onClick={() => teach(train)}>
          Train
        </button>
        <span class="muted">
          {useless ??
            (unrated > 0 ? `${number(unrated)} of ${number(replies.length)} are not rated and left out.` : null)}
        </span>
      </div>
      <div role="status">
        <Progress lesson={lesson.value} turn={turn.id} />
      </div>
    </Panel>
  );
}

/** The column of the newest step, if columns are steps of one policy; else the first. */
function newestStep(columns: readonly (Newest | null)[]): number {
  const steps = columns.map((column) => (column === null ? -1 : stepIn(servedName(column)).step));
  return Math.max(0, steps.indexOf(Math.max(...steps)));
}

function stepIn(model: string): { policy: string; step: number } {
  const [, policy, step] = /^(.*?)(?:(?:@|:step)(\d+))?$/s.exec(model)!;
  return { policy: policy!, step: step === undefined ? -1 : Number(step) };
}

/** The step of the policy that answered. A policy begins as the base model: what the base says, its step 0 says. */
function versionFor(name: string, column: Newest, policyVersion: number | null): number | null {
  if (isBase(column.model)) return 0;
  return stepIn(column.model).policy === name ? policyVersion : null;
}

function isBase(model: string): boolean {
  return models.value.some(({ id, parent }) => id === model && parent === null);
}

function FirstAsk() {
  return (
    <Panel title="Teach" name="teach">
      <p>Ask something with eight answers, rate them, and train. The new step then answers beside the old one.</p>
      {settings.value.n < 2 && (
        <button
          type="button"
          onClick={() => change({ n: 8, params: { ...settings.value.params, temperature: 1, top_p: 1 } })}
        >
          Eight answers, temperature 1
        </button>
      )}
    </Panel>
  );
}

/** A policy teaches itself; the base model cannot, so a new policy begins as its copy. */
function proposedName(model: string): string {
  return isBase(model) ? "my-agent" : stepIn(model).policy;
}

/** A look at other answers is over. */
function Progress({ lesson: now, turn }: { lesson: Lesson; turn: string }) {
  if ("turn" in now && now.turn !== turn) return null;
  switch (now.state) {
    case "idle":
      return null;
    case "looking":
      return <p class="muted">looking…</p>;
    case "looked":
      return (
        <table class="verdicts">
          <caption>What training would see</caption>
          <thead>
            <tr>
              <th>answer</th>
              <th>reward</th>
              <th>advantage</th>
              <th>verdict</th>
            </tr>
          </thead>
          <tbody>
            {now.verdicts.map(({ trajectory, reward, advantage, status, message }) => (
              <tr key={trajectory}>
                <td class="num">{trajectory + 1}</td>
                <td class="num">{number(reward)}</td>
                <td class="num">{number(advantage)}</td>
                <td>
                  {status} <span class="muted">{message}</span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      );
    case "training":
      return (
        <p>
          <progress value={now.total === null ? undefined : now.done} max={now.total ?? 1} aria-label="Training" />{" "}
          {now.total === null ? "waiting to start" : `gradient step ${now.done} of ${now.total}`}
          {now.total !== null && now.total > 0 && ` (${percent(now.done / now.total)})`}
          {now.loss !== null && `, loss ${number(now.loss)}`}
        </p>
      );
    case "trained":
      return (
        <p class="good">
          {now.name} is at step {now.step}. It answers beside step {now.from}, with the same seed.{" "}
          <a href={`/jobs/${now.job}`}>See what it learned from.</a>
        </p>
      );
    case "failed":
      return <p class="problem">{now.message}</p>;
  }
}
