// What the process says of rows: tokens, log-probabilities (one array each for all tokens of a frame, and the alternatives
// of all of them end to end), faults.

import { isJsonObject } from "../../json/json.ts";
import { forbiddingControls } from "../../sampling/controls.ts";
import { InvalidLogitsError, NoLegalTokenError } from "../../sampling/errors.ts";
import type { SampledToken, TokenLogprobs } from "../../sampling/token-logprobs.ts";
import type { Finish } from "../contract.ts";
import { type Frame, ProtocolError } from "./frames.ts";
import type { GpuRequest, Row } from "./row-table.ts";

const NOTHING: readonly number[] = [];

/** Log-probabilities of `count` tokens, in order. */
function* readLogprobs(frame: Frame, count: number): Generator<TokenLogprobs> {
  const logprobs = frame.array("logprobs", "f32", count);
  const ranks = frame.array("ranks", "i32", count);
  const counts = frame.array("topCounts", "u32", count);
  const total = counts.reduce((sum, each) => sum + each, 0);
  const ids = frame.array("topIds", "i32", total);
  const values = frame.array("topLogprobs", "f32", total);
  let at = 0;
  for (let i = 0; i < count; i++) {
    const end = at + counts[i]!;
    const listed = (array: Int32Array | Float32Array) => (end === at ? NOTHING : [...array.subarray(at, end)]);
    yield { logprob: logprobs[i]!, rank: ranks[i]!, topIds: listed(ids), topLogprobs: listed(values) };
    at = end;
  }
}

/** What the process says of a row's end: 0 = it goes on. */
const FINISHES = ["", "stop", "stop", "length"] as const;

export interface SampledRow {
  row: number;
  token: SampledToken;
  /** Index into FINISHES. */
  finish: number;
}

/** The tokens of a step. Callers drop the log-probabilities that were not asked for. */
export function* readTokens(frame: Frame): Generator<SampledRow> {
  const rows = frame.array("rows", "u32");
  const ids = frame.array("ids", "i32", rows.length);
  const finishes = frame.array("finish", "u8", rows.length);
  let i = 0;
  for (const logprobs of readLogprobs(frame, rows.length)) {
    const finish = finishes[i]!;
    if (finish >= FINISHES.length) throw frame.problem(`a finish of ${finish}`);
    yield { row: rows[i]!, token: { id: ids[i]!, logprobs }, finish };
    i++;
  }
}

/** Fills in a piece of what was asked about a prompt's tokens. null: its request has ended here meanwhile. */
export function readPrompt(frame: Frame, request: GpuRequest | null): void {
  let at = frame.number("start");
  const count = frame.array("logprobs", "f32").length;
  const described = request?.promptLogprobs ?? [];
  for (const logprobs of readLogprobs(frame, count)) described[at++] = logprobs;
}

/** The same for what was asked with `legalSets`. */
export function readPreferences(frame: Frame, request: GpuRequest | null): void {
  const start = frame.number("start");
  const logprobs = frame.array("logprobs", "f32");
  const { length } = logprobs;
  const mass = frame.array("legalMass", "f32", length);
  const likely = (kind: "legal" | "illegal") => {
    const ids = frame.array(`${kind}Ids`, "i32", length);
    const values = frame.array(`${kind}Logprobs`, "f32", length);
    return (i: number) => (ids[i] === -1 ? null : { id: ids[i]!, logprob: values[i]! });
  };
  const [legal, illegal] = [likely("legal"), likely("illegal")];
  if (!request?.preferences) return;
  for (let i = 0; i < length; i++) {
    const likeliest = { likeliestLegal: legal(i), likeliestIllegal: illegal(i) };
    request.preferences[start + i] = { logprob: logprobs[i]!, legalMass: mass[i]!, ...likeliest };
  }
}

/**
 * Both sides test whether a row ends by the token that was sampled, and must agree. `tokens`: how many it became here,
 * with those that it forces; `ended`: what the process says.
 */
export function checkEnd(
  frame: Frame,
  row: Row,
  { tokens, finish, ended }: { tokens: number; finish: Finish | null; ended: number },
): void {
  if (finish?.reason === "error") return;
  const isFirst = tokens === 1 && (finish?.reason === "stop" || finish?.reason === "length");
  const here = isFirst ? finish.reason : "";
  // A forced end that min_tokens forbids: the process does not know of it.
  const isForced = here === "stop" && ended === 0 && row.constraint !== null;
  if (here === FINISHES[ended] || isForced) return;
  throw frame.problem(`row ${row.number} ends by "${FINISHES[ended]}" there and "${here}" here`);
}

/** The rows that the process has ended with an error, by number. */
export function* readFaults(frame: Frame): Generator<{ number: unknown; kind: string; message: string }> {
  const { faults } = frame.header;
  if (!Array.isArray(faults)) throw frame.problem('no list "faults"');
  for (const fault of faults) {
    if (!isJsonObject(fault) || !Array.isArray(fault.rows)) throw frame.problem("a fault without rows");
    const about = { kind: frame.text("kind", fault), message: frame.text("message", fault) };
    for (const number of fault.rows) yield { number, ...about };
  }
}

/** The error of a row that the process has ended. */
export function faultOf({ request, sampler, constraint }: Row, kind: string, message: string): Error {
  switch (kind) {
    case "nan":
      return new InvalidLogitsError("NaN");
    case "infinity":
      return new InvalidLogitsError("+Infinity");
    case "nothing": {
      const position = sampler!.outputTokens.length;
      const controls = forbiddingControls(request.request.sampling, position, constraint !== null);
      return controls.length > 0
        ? new NoLegalTokenError(position, controls)
        : new InvalidLogitsError("nothing but -Infinity");
    }
    case "error":
      return new Error(message);
    default:
      throw new ProtocolError(`a fault "${kind}"`);
  }
}
