// The answers to rate: dragged, moved with buttons or with Alt and the arrow keys, or given stars.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { number } from "../format.ts";
import type { Reply } from "./reply.ts";
import { MOST_STARS, moved, type Rating } from "./teach.ts";

export interface RatedAnswersProps {
  replies: readonly Reply[];
  rating: Rating;
  /** Numbers of the answers, the best first. */
  order: readonly number[];
  /** By answer; 0: none yet. */
  stars: readonly number[];
  /** By answer. */
  rewards: readonly number[];
  onOrder: (order: number[]) => void;
  onStars: (stars: number[]) => void;
}

export function RatedAnswers(props: RatedAnswersProps) {
  const { replies, rating, order, rewards, onOrder } = props;
  const dragged = useSignal<number | null>(null);
  const list = useRef<HTMLOListElement>(null);
  const focusOn = useRef<number | null>(null);
  const shown = rating === "order" ? order : replies.map((_reply, i) => i);
  const move = (from: number, to: number) => {
    if (to < 0 || to >= order.length || from === to) return;
    focusOn.current = to;
    onOrder(moved(order, from, to));
  };
  useEffect(() => {
    // The item that was moved keeps the focus.
    if (focusOn.current === null) return;
    (list.current?.children[focusOn.current] as HTMLElement | undefined)?.focus();
    focusOn.current = null;
  });
  return (
    <ol class="rated" ref={list}>
      {shown.map((answer, place) => (
        <li
          key={answer}
          tabIndex={rating === "order" ? 0 : undefined}
          draggable={rating === "order"}
          aria-label={`Answer ${answer + 1}, place ${place + 1}`}
          aria-keyshortcuts={rating === "order" ? "Alt+ArrowUp Alt+ArrowDown" : undefined}
          class={dragged.value === place ? "dragged" : ""}
          onDragStart={() => {
            dragged.value = place;
          }}
          onDragEnd={() => {
            dragged.value = null;
          }}
          onDragOver={(event) => event.preventDefault()}
          onDrop={(event) => {
            event.preventDefault();
            if (dragged.value !== null) move(dragged.value, place);
          }}
          onKeyDown={(event) => {
            if (!event.altKey || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
            event.preventDefault();
            move(place, place + (event.key === "ArrowUp" ? -1 : 1));
          }}
        >
          <b class="num">{answer + 1}</b>
          <span class="answer-text">{replies[answer]!.content || "(empty)"}</span>
          {rating === "order" ? (
            <span class="row nowrap">
              <MoveButton answer={answer} word="up" isPossible={place > 0} onMove={() => move(place, place - 1)} />
              <MoveButton
                answer={answer}
                word="down"
                isPossible={place < order.length - 1}
                onMove={() => move(place, place + 1)}
              />
            </span>
          ) : (
            <Stars {...props} answer={answer} />
          )}
          <span class="num muted">{number(rewards[answer]!, 2)}</span>
        </li>
      ))}
    </ol>
  );
}

interface MoveButtonProps {
  answer: number;
  word: "up" | "down";
  isPossible: boolean;
  onMove: () => void;
}

function MoveButton({ answer, word, isPossible, onMove }: MoveButtonProps) {
  return (
    <button
      type="button"
      class="small"
      aria-label={`Move answer ${answer + 1} ${word}`}
      disabled={!isPossible}
      onClick={onMove}
    >
      {word === "up" ? "↑" : "↓"}
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
