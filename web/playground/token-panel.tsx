// One token: how likely it was, what else could have stood there, and the way on from each alternative.
import { number, percent } from "../format.ts";
import { type Alternative, label, type Token } from "./tokens.ts";

export interface TokenPanelProps {
  token: Token;
  index: number;
  /** More lines about this token. */
  notes: readonly string[];
  /** Null: the reply is not finished, so nothing can go on from it. */
  onContinue: ((alternative: Alternative) => void) | null;
}

export function TokenPanel({ token, index, notes, onContinue }: TokenPanelProps) {
  return (
    <div class="token-panel">
      <p aria-live="polite">
        <b class="mono">{label(token)}</b> token {index + 1}, id {token.id}, probability{" "}
        <b>{percent(Math.exp(token.logprob))}</b> <span class="muted">(ln {number(token.logprob)})</span>
        {notes.map((note) => (
          <span key={note} class="note">
            {note}
          </span>
        ))}
      </p>
      {token.top.length > 0 && (
        <ul>
          {token.top.map((alternative) => (
            <li key={alternative.id}>
              <AlternativeBar alternative={alternative} isOwn={alternative.id === token.id} onContinue={onContinue} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function AlternativeBar({
  alternative,
  isOwn,
  onContinue,
}: {
  alternative: Alternative;
  isOwn: boolean;
  onContinue: TokenPanelProps["onContinue"];
}) {
  const share = Math.exp(alternative.logprob);
  const text = label(alternative);
  return (
    <>
      <span class="bar" style={{ "--share": `${share * 100}%` }} aria-hidden="true" />
      <span class="mono">{text}</span>
      <span class="num muted">{percent(share)}</span>
      {isOwn ? (
        <span class="muted">chosen</span>
      ) : (
        <button
          type="button"
          class="small"
          disabled={onContinue === null}
          aria-label={`Continue with ${text}`}
          onClick={() => onContinue?.(alternative)}
        >
          continue
        </button>
      )}
    </>
  );
}
