// The tokens of a reply, coloured. One stop of the Tab key: arrow keys walk along the tokens, the pointer does the same, and
// the panel below tells about the token that was reached.
import { useId, useRef } from "preact/hooks";
import { isSpecial, label, type Token } from "./tokens.ts";

/** 0 is plain, 1 is full heat, −1 is full cold; null: no colour. "masked" has a colour of its own. */
export type Heat = number | "masked" | null;

export interface TokenTextProps {
  tokens: readonly Token[];
  heat: (token: Token, index: number) => Heat;
  /** The token to tell about; null: none. */
  active: number | null;
  onActive: (index: number | null) => void;
  /** The first token that differs from the first column's. */
  differsAt: number | null;
  /** The token where this reply left another. */
  branchAt: number | null;
  label: string;
}

export function TokenText(props: TokenTextProps) {
  const { tokens, heat, active, onActive, differsAt, branchAt } = props;
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const heats = tokens.map(heat);
  const move = (event: KeyboardEvent) => {
    const next = nextIndex(event.key, active, tokens.length);
    if (next === undefined) return;
    event.preventDefault();
    onActive(next);
    if (next !== null) list.current?.children[next]?.scrollIntoView({ block: "nearest" });
  };
  return (
    <div
      ref={list}
      class="tokens"
      role="listbox"
      tabIndex={0}
      aria-label={props.label}
      aria-activedescendant={active === null ? undefined : `${id}-${active}`}
      onKeyDown={move}
      onFocus={() => active === null && tokens.length > 0 && onActive(0)}
    >
      {tokens.map((token, i) => (
        <span
          key={i}
          id={`${id}-${i}`}
          role="option"
          tabIndex={-1}
          aria-selected={i === active}
          // what is said begins with what is seen, half a character too
          aria-label={token.text.includes("\ufffd") ? `${token.text} ${label(token)}` : label(token)}
          class={classOf(token, heats[i]!, i === differsAt, i === branchAt)}
          style={styleOf(heats[i]!)}
          onPointerEnter={() => onActive(i)}
          onPointerDown={() => onActive(i)}
        >
          {token.text === "" ? "·" : token.text}
        </span>
      ))}
    </div>
  );
}

function classOf(token: Token, heat: Heat, differs: boolean, branches: boolean): string {
  const names = ["token"];
  if (heat === "masked") names.push(heat);
  if (isSpecial(token.text)) names.push("special");
  if (differs) names.push("differs");
  if (branches) names.push("branch-point");
  return names.join(" ");
}

function styleOf(heat: Heat): Record<string, string> | undefined {
  if (heat === null || heat === "masked" || Math.abs(heat) < 0.02) return undefined;
  const share = `${Math.round(Math.min(1, Math.abs(heat)) * 70)}%`;
  return { "--share": share, "--tint": heat > 0 ? "var(--heat)" : "var(--cold)" };
}

/** Where a key leads; null: nowhere any more; undefined: the key is not ours. */
export function nextIndex(key: string, active: number | null, length: number): number | null | undefined {
  if (length === 0) return undefined;
  const at = active ?? -1;
  switch (key) {
    case "ArrowRight":
      return Math.min(length - 1, at + 1);
    case "ArrowLeft":
      return Math.max(0, at - 1);
    case "ArrowDown":
      return Math.min(length - 1, at + 10);
    case "ArrowUp":
      return Math.max(0, at - 10);
    case "Home":
      return 0;
    case "End":
      return length - 1;
    case "Escape":
      return active === null ? undefined : null;
    default:
      return undefined;
  }
}
