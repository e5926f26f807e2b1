// Teach: rate the answers of the first column, look at what would be trained, train, and see both steps answer.
import { useSignal } from "@preact/signals";
import { number, percent } from "../format.ts";
import { models } from "../models.ts";
import { Choice } from "../parts/choice.tsx";
import { Panel } from "./panel.tsx";
import { RatedAnswers } from "./rated-answers.tsx";
import { asChoice, isRunning } from "./reply.ts";
import type { Message } from "./request.ts";
import { change, columns, settings } from "./state.ts";
import { groupOf, RATINGS, type Rating, rewardsByOrder, rewardsByStars, whyUseless } from "./teach.ts";
import { type Lesson, lesson, look, train } from "./teach-run.ts";
import { NumberField } from "./toolbar.tsx";

const RATING_NAMES: Record<Rating, string> = { order: "in an order", stars: "with stars" };
const LEARNING_RATE = 5e-4;

export function TeachPanel() {
  const column = columns.value[0];
  const count = column?.exchange?.replies.length ?? 0;
  const rating = useSignal<Rating>("order");
  const order = useSignal<number[]>([]);
  const stars = useSignal<number[]>([]);
  const learningRate = useSignal(LEARNING_RATE);
  const typedName = useSignal<string | null>(null);
  if (order.value.length !== count) {
    order.value = Array.from({ length: count }, (_, i) => i);
    stars.value = Array.from({ length: count }, () => 0);
  }
  if (column === undefined || column.exchange === null || count < 2) return <FirstAsk />;
  const { exchange } = column;
  const rewards = rating.value === "order" ? rewardsByOrder(order.value) : rewardsByStars(stars.value);
  const name = typedName.value ?? proposedName(column.model);
  const useless = whyUseless(rewards);
  const isReady = useless === null && !isRunning(exchange) && name !== "" && lesson.value.state !== "training";
  const group = () => {
    const choices = exchange.replies.map((_reply, i) => asChoice(exchange, i));
    return groupOf(exchange.body.messages as Message[], choices, rewards);
  };
  return (
    <Panel title="Teach" name="teach">
      <div class="row">
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
        replies={exchange.replies}
        rating={rating.value}
        order={order.value}
        stars={stars.value}
        rewards={rewards}
        onOrder={(next) => {
          order.value = next;
        }}
        onStars={(next) => {
          stars.value = next;
        }}
      />
      <div class="row">
        <button type="button" disabled={!isReady} onClick={() => void look(name, group(), learningRate.value)}>
          Dry run
        </button>
        <button
          type="button"
          class="primary"
          disabled={!isReady}
          onClick={() => void train(name, group(), learningRate.value)}
        >
          Train
        </button>
        <span class="muted">{useless}</span>
      </div>
      <div role="status">
        <Progress lesson={lesson.value} />
      </div>
    </Panel>
  );
}

function FirstAsk() {
  return (
    <Panel title="Teach" name="teach">
      <p>
        Ask something with eight answers, put the answers in an order, and train. The new step then answers beside the
        old one.
      </p>
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
  const base = models.value.filter(({ parent }) => parent === null);
  return base.some(({ id }) => id === model) ? "my-agent" : model.replace(/(@|:step)\d+$/, "");
}

function Progress({ lesson: now }: { lesson: Lesson }) {
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
