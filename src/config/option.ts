// One server option and how to parse it. Flags and environment variables give text; YAML gives typed values.
// options.ts has the table of options, load.ts the order of precedence.

import { isJsonObject } from "../json/json.ts";
import { s3Place } from "./s3-url.ts";

export interface Option<T> {
  /** Description in `--help` and the docs. */
  help: string;
  group: OptionGroup;
  default: T;
  /** Placeholder shown after the flag. Null for a switch. */
  placeholder: string | null;
  /** May be given more than once on the command line. */
  repeatable: boolean;
  /** Never printed. */
  secret: boolean;
  /** Further environment variables, tried after FLYWHEEL_NAME. */
  alsoEnv: readonly string[];
  /** Parses one value. Throws an Error that says what is allowed. */
  parse(raw: unknown): T;
}

export type OptionGroup =
  | "Model"
  | "Server"
  | "Access"
  | "Chat"
  | "Engine"
  | "Adapters"
  | "Training"
  | "Limits"
  | "Operation";

type Extra = Partial<Pick<Option<unknown>, "secret" | "alsoEnv" | "placeholder">>;

function option<T>(group: OptionGroup, initial: T, help: string, parse: (raw: unknown) => T, extra: Extra): Option<T> {
  return {
    group,
    default: initial,
    help,
    parse,
    placeholder: "VALUE",
    repeatable: false,
    secret: false,
    alsoEnv: [],
    ...extra,
  };
}

export function text<T extends string | null>(group: OptionGroup, initial: T, help: string, extra: Extra = {}) {
  const parse = (raw: unknown): string | T => {
    if (typeof raw !== "string" && typeof raw !== "number") throw new Error("expects text");
    // Most likely an unset shell variable. An empty host would listen on every address.
    if (raw === "") throw new Error("must not be empty");
    return String(raw);
  };
  return option<string | T>(group, initial, help, parse, extra);
}

export function integer<T extends number | null>(
  group: OptionGroup,
  initial: T,
  help: string,
  bounds: { min: number; max?: number },
  extra: Extra = {},
) {
  const parse = (raw: unknown): number | T => {
    const value = typeof raw === "string" ? parseCount(raw) : raw;
    if (typeof value !== "number" || !Number.isSafeInteger(value)) {
      throw new Error("expects a whole number (suffixes such as 4k, 2M and 1Gi are allowed)");
    }
    if (value < bounds.min || value > (bounds.max ?? Number.MAX_SAFE_INTEGER)) {
      throw new Error(`must be at least ${bounds.min}${bounds.max === undefined ? "" : ` and at most ${bounds.max}`}`);
    }
    return value;
  };
  return option<number | T>(group, initial, help, parse, { placeholder: "N", ...extra });
}

/** A whole number, or the word `auto`. */
export function integerOrAuto(group: OptionGroup, initial: number | "auto", help: string, bounds: { min: number }) {
  const { parse } = integer(group, bounds.min, help, bounds);
  return option<number | "auto">(group, initial, help, (raw) => (raw === "auto" ? raw : parse(raw)), {
    placeholder: "N|auto",
  });
}

/** Node's timers hold milliseconds in 31 bits. */
const LONGEST_SECONDS = Math.floor((2 ** 31 - 1) / 1000);

export function seconds(group: OptionGroup, initial: number, help: string) {
  const parse = (raw: unknown): number => {
    const value = typeof raw === "string" && raw.trim() !== "" ? Number(raw) : raw;
    if (typeof value !== "number" || !(value >= 0 && value <= LONGEST_SECONDS)) {
      throw new Error(`expects a number of seconds, from 0 to ${LONGEST_SECONDS}`);
    }
    return value;
  };
  return option<number>(group, initial, help, parse, { placeholder: "SECONDS" });
}

/** A switch: `--name` and `--no-name` on the command line. */
export function flag(group: OptionGroup, initial: boolean, help: string) {
  const parse = (raw: unknown): boolean => {
    const word = String(raw).toLowerCase();
    if (["true", "1", "yes", "on"].includes(word)) return true;
    if (["false", "0", "no", "off"].includes(word)) return false;
    throw new Error("expects true or false");
  };
  return option<boolean>(group, initial, help, parse, { placeholder: null });
}

/** `hidden`: a choice that is not shown. */
export function oneOf<const T extends string>(
  group: OptionGroup,
  choices: readonly T[],
  initial: T,
  help: string,
  hidden?: T,
) {
  const parse = (raw: unknown): T => {
    if (raw !== hidden && !choices.includes(raw as T)) throw new Error(`must be one of ${choices.join(", ")}`);
    return raw as T;
  };
  return option<T>(group, initial, help, parse, { placeholder: choices.join("|") });
}

/**
 * A list: a repeated flag, a YAML list, or comma-separated in the environment. With `objects`, items may be objects; they
 * become JSON text.
 */
export function list(
  group: OptionGroup,
  initial: readonly string[],
  help: string,
  { objects = false, ...extra }: Extra & { objects?: boolean } = {},
) {
  const parse = (raw: unknown): readonly string[] => {
    const given = Array.isArray(raw) ? raw : typeof raw === "string" ? splitList(raw) : [raw];
    const items = objects ? given.map(asText) : given;
    if (items.some((item) => typeof item !== "string" && typeof item !== "number")) {
      throw new Error("expects a list of strings");
    }
    // Most likely an unset shell variable.
    if (items.includes("")) throw new Error("must not be empty");
    return items.map(String);
  };
  return { ...option<readonly string[]>(group, initial, help, parse, extra), repeatable: true };
}

/** The same option, whose values are looked at once more. */
function refined<T>(option: Option<T>, look: (value: T) => T): Option<T> {
  return { ...option, parse: (raw) => look(option.parse(raw)) };
}

/** A list of access tokens. Each must fit in an Authorization header. */
export function secrets(group: OptionGroup, help: string, extra: Extra) {
  return refined(list(group, [], help, { ...extra, secret: true }), (items) => {
    if (!items.every((item) => /^[\x21-\x7e]+$/.test(item))) throw new Error("must be ASCII without spaces");
    return items;
  });
}

/** A list of servers, each with settings behind a comma, which a list in the environment also has between its items. */
export function engineUrls(group: OptionGroup, help: string) {
  return refined(list(group, [], help, { placeholder: "URL" }), (items) => {
    const urls: string[] = [];
    for (const item of items) {
      if (/^[a-z]+=/.test(item) && urls.length > 0) urls.push(`${urls.pop()},${item}`);
      else urls.push(item);
    }
    const wrong = urls.find((url) => !/^https?:\/\/[^,\s]+(?:,max=[1-9]\d{0,4})?$/.test(url));
    if (wrong !== undefined) {
      throw new Error(`must look like http://10.0.0.5:8000 or http://10.0.0.5:8000,max=64, not ${wrong}`);
    }
    if (new Set(urls.map((url) => url.split(",")[0])).size < urls.length) throw new Error("has a URL twice");
    return urls;
  });
}

/** A list of MCP servers, each with a name. Their addresses may have keys. */
export function mcpServers(group: OptionGroup, help: string) {
  return refined(list(group, [], help, { secret: true, placeholder: "NAME=URL" }), (servers) => {
    for (const server of servers) {
      const [, name, url] = /^([\w-]{1,32})=(https?:\/\/.+)$/.exec(server) ?? [];
      if (name === undefined || !URL.canParse(url!) || new URL(url!).username !== "") {
        throw new Error("must look like NAME=https://tools.example/mcp; a name has letters, digits, _ and -");
      }
    }
    const names = servers.map((server) => server.slice(0, server.indexOf("=")));
    if (new Set(names).size < names.length) throw new Error("has a name twice");
    return servers;
  });
}

/** Names of members of the fields that hold parameters for engines. */
export function engineArgNames(group: OptionGroup, help: string) {
  return refined(list(group, [], help, { placeholder: "NAME" }), (names) => {
    const field = names.find((name) => /^(kv_transfer_params|engine_xargs|vllm_xargs|extra_args)$/.test(name));
    if (field !== undefined) {
      throw new Error(`expects names of members such as do_remote_decode, not the field ${field}`);
    }
    return names;
  });
}

/** A PostgreSQL database. Its URL may have a password. */
export function postgresUrl(group: OptionGroup, help: string) {
  return refined(text(group, null, help, { secret: true, placeholder: "URL" }), (url) => {
    if (url === null || !/^postgres(ql)?:\/\/\S+$/.test(url) || !URL.canParse(url)) {
      throw new Error("must look like postgres://USER:PASSWORD@HOST:5432/NAME");
    }
    return url;
  });
}

/** A list of host names as browsers send them, or `*`. */
export function hosts(group: OptionGroup, help: string) {
  return refined(list(group, [], help, { placeholder: "NAME" }), (names) =>
    names.map((name) => {
      if (name === "*" || /^(\*\.)?[a-z\d_]([a-z\d_.-]*[a-z\d_])?$/i.test(name)) return name.toLowerCase();
      throw new Error("expects names like api.example or *.example, without a scheme or a port, or *");
    }),
  );
}

/** A folder, or a bucket in the form of s3-url.ts. */
export function storage(group: OptionGroup, help: string) {
  return refined(text(group, null, help, { placeholder: "DIR|URL" }), (place) => {
    if (place !== null) s3Place(place);
    return place;
  });
}

/** A list of web origins as browsers send them, or `*`. */
export function origins(group: OptionGroup, initial: readonly string[], help: string) {
  return refined(list(group, initial, help), (names) => names.map(asOrigin));
}

/** Drops a trailing slash and the default port. Apps and extensions have their own schemes. */
function asOrigin(text: string): string {
  if (text === "*" || text === "null") return text;
  const bare = text.replace(/\/$/, "");
  if (!/^[a-z][\w+.-]*:\/\/[^/?#]+$/i.test(bare) || !URL.canParse(bare)) {
    throw new Error("expects origins like https://app.example, without a path, or *");
  }
  const { origin } = new URL(bare);
  return origin === "null" ? bare : origin;
}

/** A JSON object on the command line and in the environment; a mapping in YAML. */
export function json(group: OptionGroup, help: string) {
  const parse = (raw: unknown): Record<string, unknown> => {
    let value: unknown = raw;
    if (typeof raw === "string") {
      try {
        value = JSON.parse(raw);
      } catch (error) {
        throw new Error(`expects a JSON object: ${(error as Error).message}`, { cause: error });
      }
    }
    if (!isJsonObject(value)) throw new Error("expects a JSON object");
    return value;
  };
  return option<Record<string, unknown>>(group, {}, help, parse, { placeholder: "JSON" });
}

/** A size and an age, such as 2Gi/30d; what is not given is as in `initial`, which has both. `sizeAndAge` reads them. */
export function kept(group: OptionGroup, initial: string, help: string) {
  const [size, age] = initial.split("/") as [string, string];
  const parse = (raw: unknown): string => {
    const parts = String(raw).split("/");
    const ages = parts.filter((part) => isAge(part));
    const sizes = parts.filter((part) => !isAge(part));
    const text = `${sizes[0] ?? size}/${ages[0] ?? age}`;
    const { bytes } = sizeAndAge(text);
    if (!(Number.isSafeInteger(bytes) && bytes >= 0) || sizes.length > 1 || ages.length > 1) {
      throw new Error("expects a size, an age or both, such as 2Gi/30d, 500M or 7d; 0 for nothing");
    }
    return text;
  };
  return option<string>(group, initial, help, parse, { placeholder: "BYTES/DAYSd" });
}

const AGE = /^\s*(\d+(?:\.\d+)?)\s*d\s*$/i;

function isAge(part: string): boolean {
  return AGE.test(part);
}

/** `text`: as `kept` gives it. */
export function sizeAndAge(text: string): { bytes: number; days: number } {
  const [size, age] = text.split("/") as [string, string];
  return { bytes: parseCount(size), days: Number(AGE.exec(age)?.[1]) };
}

function asText(item: unknown): unknown {
  return typeof item === "object" && item !== null ? JSON.stringify(item) : item;
}

/** Accepts a JSON array, one JSON object, or comma-separated names. */
function splitList(raw: string): unknown[] {
  const trimmed = raw.trim();
  if (trimmed.startsWith("[")) {
    try {
      return JSON.parse(trimmed) as unknown[];
    } catch {
      // JSON.parse quotes the text in its message, and the text may be a secret.
      throw new Error("starts with [ but is not a JSON list");
    }
  }
  return trimmed.startsWith("{")
    ? [trimmed]
    : trimmed
        .split(",")
        .map((item) => item.trim())
        .filter((item) => item !== "");
}

const SUFFIXES: Record<string, number> = {
  "": 1,
  k: 1e3,
  m: 1e6,
  g: 1e9,
  ki: 2 ** 10,
  mi: 2 ** 20,
  gi: 2 ** 30,
};

/** "4096", "4k" = 4000, "4Ki" = 4096. */
function parseCount(raw: string): number {
  const match = /^\s*(-?\d+(?:\.\d+)?)\s*([kmg]i?)?b?\s*$/i.exec(raw);
  return match === null ? Number.NaN : Number(match[1]) * SUFFIXES[(match[2] ?? "").toLowerCase()]!;
}
