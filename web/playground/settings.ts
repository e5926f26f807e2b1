// Everything that decides what is asked and how it is shown. It belongs to a chat and is kept with it. The address may bring
// settings, and a link may share them; what equals its default stays out of the link.
import type { Tool } from "./tools.ts";

/** Fields of a request that are numbers. Absent: the server's default. */
export const PARAMS = [
  { name: "temperature", min: 0, max: 2, step: 0.1, what: "0 takes the likeliest token" },
  { name: "top_p", min: 0.01, max: 1, step: 0.05, what: "keep the likeliest tokens up to this probability" },
  { name: "top_k", min: -1, max: 1000, step: 1, what: "keep this many tokens; 0 keeps all" },
  { name: "min_p", min: 0, max: 1, step: 0.01, what: "drop tokens below this share of the likeliest" },
  { name: "max_tokens", min: 1, max: 100_000, step: 1, what: "longest reply" },
  { name: "min_tokens", min: 0, max: 100_000, step: 1, what: "shortest reply" },
  { name: "repetition_penalty", min: 0.1, max: 2, step: 0.05, what: "above 1: less of what was said, prompt included" },
  { name: "presence_penalty", min: -2, max: 2, step: 0.1, what: "once per token of the reply" },
  { name: "frequency_penalty", min: -2, max: 2, step: 0.1, what: "per occurrence in the reply" },
] as const;
export type ParamName = (typeof PARAMS)[number]["name"];

export const OUTPUT_KINDS = ["text", "json", "regex", "choice", "grammar"] as const;
export type OutputKind = (typeof OUTPUT_KINDS)[number];
export const VIEWS = ["text", "tokens", "raw", "prompt"] as const;
export type View = (typeof VIEWS)[number];
export const COLOURS = ["surprise", "difference", "legal"] as const;
export type Colour = (typeof COLOURS)[number];
export const PANELS = ["none", "teach", "time", "many"] as const;
export type Panel = (typeof PANELS)[number];

export interface Settings {
  /** One column each; empty: the base model. */
  models: readonly string[];
  /** Answers per column. */
  n: number;
  /** Null: another one for every request. */
  seed: number | null;
  /** Columns share the seed, so that they draw the same random numbers. */
  isCoupled: boolean;
  system: string;
  params: Readonly<Partial<Record<ParamName, number>>>;
  /** Alternatives per token; 0: no log-probabilities. */
  alternatives: number;
  output: OutputKind;
  /** The schema, expression, choices (one per line) and grammar; each kind keeps its own. */
  constraints: Readonly<Partial<Record<OutputKind, string>>>;
  tools: readonly Tool[];
  /** How often a conversation goes on by itself after tool calls whose results are set. */
  toolTurns: number;
  /** More fields of the request, as a JSON object; "" is none. */
  extra: string;
  view: View;
  colour: Colour;
  panel: Panel;
}

/** What an address may say. */
export interface Address {
  settings: Settings;
  /** A text for the box. */
  draft: string;
  /** A chat that this browser keeps; "" is none. */
  chat: string;
}

export const DEFAULTS: Settings = {
  models: [],
  n: 1,
  seed: null,
  isCoupled: true,
  system: "",
  params: {},
  alternatives: 5,
  output: "text",
  constraints: {},
  tools: [],
  toolTurns: 8,
  extra: "",
  view: "text",
  colour: "surprise",
  panel: "none",
};

const CHOICES = { output: OUTPUT_KINDS, view: VIEWS, colour: COLOURS, panel: PANELS } as const;

/** The schema, expression, choices or grammar that applies. */
export function constraintOf({ output, constraints }: Settings): string {
  return constraints[output] ?? "";
}

/** The query of a link that shares settings, without the question mark. Tools stay out of it. */
export function toQuery(settings: Settings): string {
  const query = new URLSearchParams();
  for (const model of settings.models) query.append("m", model);
  if (settings.n !== DEFAULTS.n) query.set("n", String(settings.n));
  if (settings.seed !== null) query.set("seed", String(settings.seed));
  if (!settings.isCoupled) query.set("coupled", "no");
  if (settings.alternatives !== DEFAULTS.alternatives) query.set("top", String(settings.alternatives));
  for (const { name } of PARAMS) {
    const value = settings.params[name];
    if (value !== undefined) query.set(name, String(value));
  }
  for (const key of Object.keys(CHOICES) as (keyof typeof CHOICES)[]) {
    if (settings[key] !== DEFAULTS[key]) query.set(key, settings[key]);
  }
  const texts = { system: settings.system, constraint: constraintOf(settings), extra: settings.extra };
  for (const [name, text] of Object.entries(texts)) if (text !== "") query.set(name, text);
  return query.toString();
}

/** What the address does not say, or says wrongly, has its default. */
export function fromQuery(text: string): Address {
  const query = new URLSearchParams(text);
  const number = (name: string) => {
    const value = query.get(name);
    return value === null || value.trim() === "" || !Number.isFinite(Number(value)) ? null : Number(value);
  };
  const integer = (name: string, least: number) => {
    const value = number(name);
    return value !== null && Number.isSafeInteger(value) && value >= least ? value : null;
  };
  const oneOf = <Name extends string>(name: string, names: readonly Name[], initial: Name): Name =>
    names.find((known) => known === query.get(name)) ?? initial;
  const params: Partial<Record<ParamName, number>> = {};
  for (const { name } of PARAMS) {
    const value = number(name);
    if (value !== null) params[name] = value;
  }
  const output = oneOf("output", OUTPUT_KINDS, "text");
  const constraint = query.get("constraint") ?? "";
  const settings: Settings = {
    ...DEFAULTS,
    models: query.getAll("m").filter((model) => model !== ""),
    n: integer("n", 1) ?? DEFAULTS.n,
    seed: integer("seed", 0),
    isCoupled: query.get("coupled") !== "no",
    alternatives: integer("top", 0) ?? DEFAULTS.alternatives,
    params,
    output,
    constraints: constraint === "" ? {} : { [output]: constraint },
    view: oneOf("view", VIEWS, "text"),
    colour: oneOf("colour", COLOURS, "surprise"),
    panel: oneOf("panel", PANELS, "none"),
    system: query.get("system") ?? "",
    extra: query.get("extra") ?? "",
  };
  return { settings, draft: query.get("q") ?? "", chat: /^\w*$/.exec(query.get("chat") ?? "")?.[0] ?? "" };
}

/** Only what the address says itself, for a chat that has settings of its own. */
export function overrides(text: string): Partial<Settings> {
  const { settings } = fromQuery(text);
  const said = (Object.keys(DEFAULTS) as (keyof Settings)[]).filter(
    (key) => JSON.stringify(settings[key]) !== JSON.stringify(DEFAULTS[key]),
  );
  return Object.fromEntries(said.map((key) => [key, settings[key]]));
}
