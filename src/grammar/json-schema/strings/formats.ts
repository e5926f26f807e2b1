// String formats as regular expressions over the decoded text. Each accepts a subset of its standard, so every generated
// string passes a validator. A format not listed here is an annotation.
import {
  CIDR4,
  CIDR6,
  EMAIL,
  HOSTNAME,
  IPV4,
  IPV6,
  IRI,
  NETWORK4,
  NETWORK6,
  SHORT_EMAILS,
  shortUris,
  URI,
} from "./addresses.ts";

// RFC 3339 dates, times and durations as regular expressions over the decoded text.

const LEAP_YEAR = "(?:(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26]))|(?:(?:0[48]|[2468][048]|[13579][26])00))";
const DATE =
  "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))" +
  `|${LEAP_YEAR}-02-29)`;
const TIME = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
const DATE_TIME = `${DATE}T${TIME}`;

/** Appendix A: only the next smaller unit may follow a unit. */
const COUNT = "[0-9]{1,9}";
const SECONDS = `${COUNT}S`;
const MINUTES = `${COUNT}M(?:${SECONDS})?`;
const CLOCK = `T(?:${COUNT}H(?:${MINUTES})?|${MINUTES}|${SECONDS})`;
const DAYS = `${COUNT}D`;
const MONTHS = `${COUNT}M(?:${DAYS})?`;
const YEARS = `${COUNT}Y(?:${MONTHS})?`;
const DURATION = `P(?:(?:${YEARS}|${MONTHS}|${DAYS})(?:${CLOCK})?|${CLOCK}|${COUNT}W)`;

const POINTER = "(?:/(?:[^~/]|~[01])*)*";
const VARIABLE = "[A-Za-z0-9_]+(?:\\.[A-Za-z0-9_]+)*(?::[1-9][0-9]{0,3}|\\*)?";
const TEMPLATE = `(?:[A-Za-z0-9._~:/?#@!$&()*+,;=\\[\\]-]|%[0-9A-Fa-f]{2}|\\{[+#./;?&]?${VARIABLE}(?:,${VARIABLE})*\\})*`;
/** A piece of the syntax that all dialects share: no lookaround, no references, groups one level deep. */
const PIECE =
  "(?:[A-Za-z0-9 _:;,@#%&=~\"'<>!`/-]|\\.|\\\\[dDwWsS.^$*+?()\\[\\]{}|\\\\/]|\\[\\^?(?:A-Z|a-z|0-9|[A-Za-z0-9 _.,:@]|\\\\[dws.\\-])+\\])(?:[*+?]|\\{[1-9]\\})?";
const REGEX = `\\^?(?:${PIECE}|\\((?:\\?:)?(?:${PIECE})+(?:\\|(?:${PIECE})+)*\\)[*+?]?)+\\$?`;
const BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?";

function uuid(version: string): string {
  return `[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-${version}[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}`;
}

const formats: Record<string, string> = {
  date: DATE,
  time: TIME,
  "date-time": DATE_TIME,
  duration: DURATION,
  email: EMAIL,
  "idn-email": EMAIL,
  hostname: HOSTNAME,
  "idn-hostname": HOSTNAME,
  ipv4: IPV4,
  ipv6: IPV6,
  uuid: "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
  ...Object.fromEntries(Array.from("12345678", (version) => [`uuid${version}`, uuid(version)])),
  uri: URI.absolute,
  "uri-reference": URI.reference,
  iri: IRI.absolute,
  "iri-reference": IRI.reference,
  "uri-template": TEMPLATE,
  regex: REGEX,
  "json-pointer": POINTER,
  "relative-json-pointer": `(?:0|[1-9][0-9]{0,8})(?:#|${POINTER})`,
  ipvanyaddress: `(?:${IPV4}|${IPV6})`,
  ipv4interface: CIDR4,
  ipv6interface: CIDR6,
  ipvanyinterface: `(?:${CIDR4}|${CIDR6})`,
  ipv4network: NETWORK4,
  ipv6network: NETWORK6,
  ipvanynetwork: `(?:${NETWORK4}|${NETWORK6})`,
  cidrv4: CIDR4,
  cidrv6: CIDR6,
  mac: "(?:[0-9a-f]{2}:){5}[0-9a-f]{2}",
  byte: BASE64,
  base64: BASE64,
  base64url: "(?:[A-Za-z0-9_-]{4})*", // whole groups only: readers disagree on padding
  hex: "(?:[0-9a-f]{2})*",
  e164: "\\+[1-9][0-9]{6,14}",
  nanoid: "[A-Za-z0-9_-]{21}",
  cuid: "c[0-9a-z]{24}",
  cuid2: "[a-z][0-9a-z]{1,31}",
  ulid: "[0-7][0-9A-HJKMNP-TV-Z]{25}",
  xid: "[0-9a-v]{20}",
  ksuid: "[A-Za-z0-9]{27}",
};

/** Simpler forms of a format with at most `max` characters, the widest first. */
export function plainerForms(names: readonly string[], max: number): readonly string[] {
  if (names.length !== 1) return [];
  if (/^(?:idn-)?email$/.test(names[0]!)) return SHORT_EMAILS;
  return /^[iu]ri(?:-reference)?$/.test(names[0]!) ? shortUris(max) : [];
}

/** The pattern zod sends with the format hostname. Every generated hostname matches it. */
const hostnamePattern =
  "^(?=.{1,253}\\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\\.?$";

/** Whether the format already implies the pattern. Combining the two would give a large automaton. */
export function isImplied(pattern: string, format: string): boolean {
  return format === "hostname" && pattern === hostnamePattern;
}

export function isKnownFormat(name: string): boolean {
  return Object.hasOwn(formats, name);
}

/** null if the format is an annotation. */
export function formatPattern(name: string): string | null {
  return Object.hasOwn(formats, name) ? formats[name]! : null;
}

const NO_DIGITS = "^[^0-9]*$";
const NO_COLON = "^[^:]*$";
const NO_AT = "^[^@]*$";

/** Patterns of strings that are not in the format by any reading of its standard. */
const surelyOutside: Readonly<Record<string, string>> = {
  date: NO_DIGITS,
  "date-time": NO_DIGITS,
  duration: NO_DIGITS,
  email: NO_AT,
  hostname: "[ -,/:-@]",
  "idn-email": NO_AT,
  "idn-hostname": "[ -,/:-@]",
  ipv4: "[g-wyzG-WYZ_:-]",
  ipv6: NO_COLON,
  iri: NO_COLON,
  time: NO_DIGITS,
  uri: NO_COLON,
  uuid: "^[^:{]*[g-zG-Z][^:{]*$",
};

export function surelyNot(format: string): string | null {
  return Object.hasOwn(surelyOutside, format) ? surelyOutside[format]! : null;
}
