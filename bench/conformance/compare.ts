// Whether two replies to the same request say the same. Ids, times and fingerprints may differ, and log-probabilities by a
// little; so may how a stream is cut into chunks. Keys that only newer servers send are left out.
import type { Json, Reply } from "./recording.ts";

type JsonObject = { [key: string]: Json };

/** Worst last: a reply is judged by its worst difference. */
export const VERDICTS = [
  "same",
  "wording of an error",
  "type, param or shape of an error",
  "values",
  "status",
] as const;
export type Verdict = (typeof VERDICTS)[number];

export interface Judgement {
  verdict: Verdict;
  /** Where they differ: path, ours, theirs. */
  differences: string[];
}

/** Largest difference of two log-probabilities that rounding explains. */
const TOLERANCE = 1e-3;
const NEWER_KEYS = new Set([
  "routed_experts",
  "prompt_text",
  "ec_transfer_params",
  "metrics",
  "created_cache_tokens",
  "multimodal_tokens",
  "token_str",
]);
/** Only their presence is compared. */
const OWN_VALUES = new Set(["id", "created", "system_fingerprint", "owned_by", "root", "version", "permission"]);

export function judge(ours: Reply, theirs: Reply): Judgement {
  if (ours.status !== theirs.status) {
    return { verdict: "status", differences: [`status: ${ours.status}, recorded ${theirs.status}${errorOf(ours)}`] };
  }
  const differences: string[] = [];
  compare(whole(ours), whole(theirs), "", differences);
  if (differences.length === 0) return { verdict: "same", differences };
  if (ours.status < 400) return { verdict: "values", differences };
  const isWording = differences.every((difference) => difference.startsWith(".error.message:"));
  return { verdict: isWording ? "wording of an error" : "type, param or shape of an error", differences };
}

function errorOf({ json }: Reply): string {
  return json !== undefined && isObject(json) && json.error !== undefined ? ` ${JSON.stringify(json.error)}` : "";
}

function whole(reply: Reply): Json {
  return reply.sse === undefined ? (reply.json ?? reply.text ?? null) : joined(reply.sse);
}

function compare(ours: Json | undefined, theirs: Json | undefined, path: string, out: string[]): void {
  if (ours === theirs) return;
  if (typeof ours === "number" && typeof theirs === "number" && Math.abs(ours - theirs) <= TOLERANCE) return;
  if (Array.isArray(ours) && Array.isArray(theirs)) {
    for (let i = 0; i < Math.max(ours.length, theirs.length); i++) compare(ours[i], theirs[i], `${path}[${i}]`, out);
  } else if (isObject(ours) && isObject(theirs)) {
    for (const key of new Set([...Object.keys(ours), ...Object.keys(theirs)])) {
      if (NEWER_KEYS.has(key) || (key === "tool_calls" && isEmpty(ours[key]) && isEmpty(theirs[key]))) continue;
      if (key === "bytes" && isCut(ours)) continue;
      if (key === "rank" && isNear(ours.rank, theirs.rank)) continue;
      if (OWN_VALUES.has(key) && ours[key] !== undefined && theirs[key] !== undefined) continue;
      compare(ours[key], theirs[key], `${path}.${key}`, out);
    }
  } else {
    out.push(`${path}: ${short(ours)}, recorded ${short(theirs)}`);
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Its `bytes` are the token's own; vLLM has those of the text, which differ where a character is split. */
function isCut({ bytes, token }: JsonObject): boolean {
  if (!Array.isArray(bytes)) return false;
  return (
    String(token).startsWith("token_id:") ||
    Buffer.from(bytes as number[])
      .toString("utf8")
      .includes("\ufffd")
  );
}

/** Ranks far down change places where two log-probabilities are almost equal. */
function isNear(ours: Json | undefined, theirs: Json | undefined): boolean {
  return typeof ours === "number" && typeof theirs === "number" && Math.abs(ours - theirs) <= 0.01 * theirs;
}

function isEmpty(value: Json | undefined): boolean {
  return value === undefined || (Array.isArray(value) && value.length === 0);
}

function short(value: Json | undefined): string {
  const text = JSON.stringify(value) ?? "absent";
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}

/** The chunks of a stream as one object: texts and lists of each choice joined, other members as last sent. */
function joined(events: readonly Json[]): Json {
  const choices: JsonObject = {};
  const rest: JsonObject = {};
  for (const event of events) {
    if (!isObject(event)) {
      rest.end = event;
      continue;
    }
    const { choices: list, ...others } = event;
    Object.assign(rest, others);
    for (const choice of Array.isArray(list) ? list : []) {
      if (isObject(choice)) choices[String(choice.index)] = appended(choices[String(choice.index)] ?? {}, choice, "");
    }
  }
  return { ...rest, choices };
}

const JOINED_TEXTS = new Set(["text", "content", "reasoning", "arguments"]);

function appended(before: Json, more: Json, key: string): Json {
  if (typeof before === "string" && typeof more === "string" && JOINED_TEXTS.has(key)) return before + more;
  if (Array.isArray(before) && Array.isArray(more)) return [...before, ...more];
  if (!isObject(before) || !isObject(more)) return more === null && key !== "finish_reason" ? before : more;
  const result = { ...before };
  for (const [name, value] of Object.entries(more)) {
    result[name] = result[name] === undefined ? value : appended(result[name], value, name);
  }
  return result;
}
