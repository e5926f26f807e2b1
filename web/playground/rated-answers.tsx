// The answers to rate: dragged, moved with buttons or with Alt and the arrow keys, or given stars. Answers that are the same are one
// line.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { number } from "../format.ts";
import type { Reply } from "./reply.ts";
import { lowered, MOST_STARS, type Places, placed, placeOfAnswer, type Rating, raised, tied } from "./teach.ts";

export interface RatedAnswersProps {
  replies: readonly Reply[];
  /** By answer, the first one that says the same. */
  firsts: readonly number[];
  rating: Rating;
  places: Places;
  /** By answer; 0: none yet. */
  stars: readonly number[];
  /** By answer; null: not rated. */
  rewards: readonly (number | null)[];
  onPlaces: (places: Places) => void;
  onStars: (stars: number[]) => void;
}

export function RatedAnswers(props: RatedAnswersProps) {
  const { replies, firsts, rating, places, rewards, onPlaces } = props;
  const dragged = useSignal<number | null>(null);
  const list = useRef<HTMLOListElement>(null);
  const focusOn = useRef<number | null>(null);
  const answers = replies.flatMap((_reply, i) => (firsts[i] === i ? [i] : []));
  const unrated = answers.filter((answer) => placeOfAnswer(places, answer) === null);
  const shown = rating === "order" ? [...places.flat(), ...unrated] : answers;
  const change = (answer: number, next: Places) => {
    focusOn.current = answer;
    onPlaces(next);
  };
  useEffect(() => {
    // The item that was moved keeps the focus.
    if (focusOn.current === null) return;
    list.current?.querySelector<HTMLElement>(`[data-answer="${focusOn.current}"]`)?.focus();
    focusOn.current = null;
  });
  return (
    <ol class="rated" ref={list}>
      {shown.map((answer) => {
        const place = placeOfAnswer(places, answer);
        const same = firsts.flatMap((first, i) => (first === answer ? [i + 1] : []));
        const isOrder = rating === "order";
        return (
          <li
            key={answer}
            data-answer={answer}
            tabIndex={isOrder ? 0 : undefined}
            draggable={isOrder}
            aria-label={`Answer ${same.join(" and ")}, ${place === null ? "not rated" : `place ${place + 1}`}`}
            aria-keyshortcuts={isOrder ? "Alt+ArrowUp Alt+ArrowDown" : undefined}
            class={`${dragged.value === answer ? "dragged" : ""} ${isOrder && place === null ? "unrated" : ""}`}
            onDragStart={() => {
              dragged.value = answer;
            }}
            onDragEnd={() => {
              dragged.value = null;
            }}
            onDragOver={(event) => event.preventDefault()}
            onDrop={(event) => {
              event.preventDefault();
              if (dragged.value !== null) change(dragged.value, placed(places, dragged.value, place ?? places.length));
            }}
            onKeyDown={(event) => {
              if (!event.altKey || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
              event.preventDefault();
              change(answer, event.key === "ArrowUp" ? raised(places, answer) : lowered(places, answer));
            }}
          >
            <b class="num">{same.join(", ")}</b>
            <span class="answer-text">{replies[answer]!.content || "(empty)"}</span>
            {isOrder ? (
              <span class="row nowrap">
                <RateButton
                  {...{ answer, sign: "↑", what: "up", isPossible: place !== 0 || places[0]!.length > 1 }}
                  onRate={() => change(answer, raised(places, answer))}
                />
                <RateButton
                  {...{ answer, sign: "↓", what: "down", isPossible: place !== null }}
                  onRate={() => change(answer, lowered(places, answer))}
                />
                <button
                  type="button"
                  class="small"
                  title="as good as the one above"
                  aria-label={`Answer ${answer + 1} is as good as the one above`}
                  aria-pressed={place !== null && places[place]!.length > 1}
                  disabled={place === null || (place === 0 && places[0]!.length < 2)}
                  onClick={() => change(answer, tied(places, answer))}
                >
                  =
                </button>
              </span>
            ) : (
              <Stars {...props} answer={answer} />
            )}
            <span class="num muted">{rewards[answer] === null ? "–" : number(rewards[answer]!, 2)}</span>
          </li>
        );
      })}
    </ol>
  );
}

interface RateButtonProps {
  answer: number;
  sign: string;
  what: string;
  isPossible: boolean;
  onRate: () => void;
}

function RateButton({ answer, sign, what, isPossible, onRate }: RateButtonProps) {
  return (
    <button
      type="button"
      class="small"
      aria-label={`Move answer ${answer + 1} ${what}`}
      disabled={!isPossible}
      onClick={onRate}
    >
      {sign}
    </button>
  );
}

function Stars({ answer, stars, onStars }: RatedAnswersProps & { answer: number }) {
  return (
    <fieldset class="stars">
      <legend class="sr-only">Stars for answer {answer + 1}</legend>
      {Array.from({ length: MOST_STARS }, (_, i) => (
        <label key={i} class={i < stars[answer]! ? "lit" : ""}>
          <input
            type="radio"
            class="sr-only"
            name={`stars-${answer}`}
            checked={stars[answer] === i + 1}
            onChange={() => onStars(stars.map((count, other) => (other === answer ? i + 1 : count)))}
          />
          <span class="sr-only">{i + 1}</span>
          <span aria-hidden="true">{i < stars[answer]! ? "★" : "☆"}</span>
        </label>
      ))}
    </fieldset>
  );
}
