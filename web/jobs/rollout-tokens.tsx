// The tokens of a rollout, coloured, with the numbers of the one that was reached.
import { useState } from "preact/hooks";
import { count, number } from "../format.ts";
import { Choice } from "../parts/choice.tsx";
import { useQuery } from "../parts/use-query.ts";
import { TokenText } from "../playground/token-text.tsx";
import { label } from "../playground/tokens.ts";
import { loadNumbers, type Sequence, type TokenNumbers, tokensOf } from "./records.ts";
import { COLOUR_NAMES, COLOURS, type Colour, coloursOf, numbersAt } from "./token-colours.ts";

export interface RolloutTokensProps {
  path: string;
  sequences: readonly Sequence[];
  /** The trainer has numbers of trained rollouts only. */
  isTrained: boolean;
  colour: Colour;
  onColour: (colour: Colour) => void;
}

const NOT_TRAINED = "It was not trained, so there are no numbers of the trainer: no gradient, no ratio, no entropy.";

export function RolloutTokens({ path, sequences, isTrained, colour, onColour }: RolloutTokensProps) {
  const { data, error } = useQuery(`${path} ${isTrained}`, async (signal) =>
    isTrained ? loadNumbers(path, signal) : NOT_TRAINED,
  );
  const numbers = data === null || typeof data === "string" ? [] : data.sequences;
  if (sequences.length === 0) return <p>It was left out before it was tokenised, so there are no tokens.</p>;
  return (
    <>
      <Choice legend="Colour" name="colour" names={COLOUR_NAMES} values={COLOURS} value={colour} onChange={onColour} />
      <p class="muted">{typeof data === "string" ? data : error}</p>
      {sequences.map((sequence, i) => (
        <SequenceTokens
          key={`${path} ${i}`}
          sequence={sequence}
          numbers={numbers.find((one) => one.sequence === i)}
          colour={colour}
          name={`Tokens of sequence ${i + 1}`}
        />
      ))}
    </>
  );
}

interface SequenceTokensProps {
  sequence: Sequence;
  numbers: TokenNumbers["sequences"][number] | undefined;
  colour: Colour;
  name: string;
}

export function SequenceTokens({ sequence, numbers, colour, name }: SequenceTokensProps) {
  const [active, setActive] = useState<number | null>(null);
  const tokens = tokensOf(sequence);
  const colours = coloursOf(colour, sequence, numbers);
  const masked = colours.filter((heat) => heat === "masked").length;
  return (
    <div class="rollout-tokens">
      <TokenText
        tokens={tokens}
        heat={(_token, i) => colours[i] ?? null}
        active={active}
        onActive={setActive}
        differsAt={null}
        branchAt={null}
        label={name}
      />
      {masked > 0 && (
        <p class="muted">
          <span class="token masked">{count(masked, "token")}</span> masked by a rule of the loss: clipped or filtered,
          so without a gradient
        </p>
      )}
      {active !== null && (
        <p class="token-panel num" aria-live="polite">
          <b class="mono">{label(tokens[active]!)}</b> token {active + 1}, id {tokens[active]!.id},{" "}
          {sequence.mask[active] === 1 ? "trained" : "not trained"}, logprob {number(tokens[active]!.logprob)}
          {Object.entries(numbersAt(numbers, active)).map(([field, value]) => `, ${field} ${number(value)}`)}
        </p>
      )}
    </div>
  );
}
