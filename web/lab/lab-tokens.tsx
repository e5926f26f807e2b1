// The tokens of a rollout with what the loss asks of each, now and in the job.
import { count, number } from "../format.ts";
import type { Sequence } from "../jobs/records.ts";
import { SequenceTokens } from "../jobs/rollout-tokens.tsx";
import type { Colour } from "../jobs/token-colours.ts";
import { TableScroll } from "../parts/table-scroll.tsx";
import type { Numbers, SequenceLoss } from "./token-loss.ts";

/** Rows of the table; a longer sequence is coloured in full. */
const MOST_ROWS = 400;

export interface LabTokensProps {
  sequence: Sequence;
  result: SequenceLoss;
  recorded: Numbers | undefined;
  colour: Colour;
  name: string;
}

export function LabTokens({ sequence, result, recorded, colour, name }: LabTokensProps) {
  const { numbers, loss, clipped } = result;
  const { positions, values } = numbers;
  const moved = positions.filter((_, t) => values.gradient![t] !== 0).length;
  return (
    <>
      <SequenceTokens sequence={sequence} numbers={numbers} colour={colour} name={`Tokens of ${name}`} />
      <p class="num" role="status">
        {count(positions.length, "trained token")}: {number(clipped)} clipped, {number(positions.length - moved)}{" "}
        without a gradient. Loss {number(loss)}.
      </p>
      <details>
        <summary>numbers of {name}</summary>
        <TableScroll label={`Numbers of ${name}`}>
          <table class="lab-tokens">
            <thead>
              <tr>
                <th>token</th>
                <th>ratio</th>
                <th>clip</th>
                <th>advantage</th>
                <th>dL/dℓ</th>
                <th>in the job</th>
              </tr>
            </thead>
            <tbody>
              {positions.slice(0, MOST_ROWS).map((at, t) => (
                <tr key={at}>
                  <td class="mono">{JSON.stringify(sequence.token_strings[at] ?? sequence.tokens[at])}</td>
                  <td class="num">
                    <data value={values.ratio![t]!}>{number(values.ratio![t]!)}</data>
                  </td>
                  <td>{values.clipped![t] === 0 ? "" : values.clipped![t] === 1 ? "above" : "below"}</td>
                  <td class="num">{number(values.advantage![t]!)}</td>
                  <td class="num">
                    <data value={values.gradient![t]!}>{number(values.gradient![t]!)}</data>
                  </td>
                  <td class="num muted">{number(recorded?.values.gradient?.[t] ?? Number.NaN)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </TableScroll>
        {positions.length > MOST_ROWS && <p class="muted">The first {number(MOST_ROWS)}.</p>}
      </details>
    </>
  );
}
