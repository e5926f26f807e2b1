// Formats of hosts and addresses (RFC 1123, 3986, 4291, 5321) as regular expressions over the decoded text.

const OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
export const IPV4 = `${OCTET}(?:\\.${OCTET}){3}`;

const HEX = "[0-9A-Fa-f]{1,4}";
/** The last 32 bits may be written as an IPv4 address. */
const LAST_TWO = `(?:${HEX}:${HEX}|${IPV4})`;
export const IPV6 = `(?:${[
  `(?:${HEX}:){6}${LAST_TWO}`,
  `::(?:${HEX}:){5}${LAST_TWO}`,
  `(?:${HEX})?::(?:${HEX}:){4}${LAST_TWO}`,
  `(?:(?:${HEX}:){0,1}${HEX})?::(?:${HEX}:){3}${LAST_TWO}`,
  `(?:(?:${HEX}:){0,2}${HEX})?::(?:${HEX}:){2}${LAST_TWO}`,
  `(?:(?:${HEX}:){0,3}${HEX})?::${HEX}:${LAST_TWO}`,
  `(?:(?:${HEX}:){0,4}${HEX})?::${LAST_TWO}`,
  `(?:(?:${HEX}:){0,5}${HEX})?::${HEX}`,
  `(?:(?:${HEX}:){0,6}${HEX})?::`,
].join("|")})`;

export const CIDR4 = `${IPV4}/(?:[12]?[0-9]|3[0-2])`;
export const CIDR6 = `${IPV6}/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9])`;
// A network address has no bits set beyond its prefix.
export const NETWORK4 = `(?:${IPV4}/32|(?:${OCTET}\\.){3}0/24|(?:${OCTET}\\.){2}0\\.0/16|${OCTET}\\.0\\.0\\.0/8)`;
export const NETWORK6 = `(?:${IPV6}/128|(?:${HEX}:){1,4}:/64|(?:${HEX}:){1,3}:/48|(?:${HEX}:){1,2}:/32)`;

const LETTER_OR_DIGIT = "[A-Za-z0-9]";
const INNER = "[A-Za-z0-9-]";

/**
 * A label of 1 to `longest` characters. Hyphens in the third and fourth place mark an encoded label (`xn--`), which a
 * regular expression cannot verify. Such labels are never generated.
 */
function label(longest: number): string {
  const long = `${INNER}(?:${LETTER_OR_DIGIT}${INNER}|-${LETTER_OR_DIGIT})${INNER}{0,${longest - 5}}${LETTER_OR_DIGIT}`;
  return `${LETTER_OR_DIGIT}(?:${LETTER_OR_DIGIT}|${INNER}{1,2}${LETTER_OR_DIGIT}|${long})?`;
}

/** A name has at most 253 characters: a few long labels or more short ones. */
export const HOSTNAME = `(?:${label(63)}(?:\\.${label(63)}){0,2}|${label(31)}(?:\\.${label(31)}){0,6})`;

const TOP_LEVEL = "[A-Za-z](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?";
/** The URL standard reads a last label that begins with a digit as a number and usually rejects it. */
const NAMED_HOST = `(?:(?:${label(63)}\\.){0,2}${TOP_LEVEL}|(?:${label(31)}\\.){0,6}${TOP_LEVEL})`;

const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]";
/** At most 64 characters before the @. */
const LOCAL_PART = `(?:${[
  `${ATOM}{1,64}`,
  `${ATOM}{1,30}\\.${ATOM}{1,33}`,
  `${ATOM}{1,15}(?:\\.${ATOM}{1,15}){2,3}`,
  `${ATOM}{1,8}(?:\\.${ATOM}{1,8}){4,6}`,
].join("|")})`;
const MAIL_DOMAIN = `(?:${label(63)}\\.){1,2}[A-Za-z]{2,24}|(?:${label(31)}\\.){1,6}[A-Za-z]{2,24}`;
export const EMAIL = `${LOCAL_PART}@(?:${MAIL_DOMAIN})`;

const ENCODED = "%[0-9A-Fa-f]{2}";
const UNRESERVED = "A-Za-z0-9._~!$&'()*+,;=\\-";
/** Non-ASCII characters of an IRI, without those that normalisation may change or that have no fixed meaning. */
const BEYOND_ASCII = "\\u{A1}-\\u{2DF}\\u{370}-\\u{377}\\u{3A3}-\\u{481}\\u{3041}-\\u{3096}\\u{4E00}-\\u{9FA5}";
const CHARACTER = `[${UNRESERVED}:@/]`;
const PORT = "(?::(?:[1-5]?[0-9]{1,4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?";

/** The URL standard requires a host after these schemes, except `file`. */
const WEB_SCHEMES = ["http", "https", "ws", "wss", "ftp", "file"];
const OTHER_SCHEME = otherScheme(WEB_SCHEMES, "abcdefghijklmnopqrstuvwxyz");

/** Schemes, or ends of schemes, other than `words`. `first` lists the possible first characters. */
function otherScheme(words: readonly string[], first: string): string {
  const letters = [...new Set(words.filter((word) => word !== "").map((word) => word[0]!))];
  const others = [...first].filter((char) => !letters.includes(char)).join("");
  const rest = "abcdefghijklmnopqrstuvwxyz0123456789+.-";
  const branches = letters.map((letter) => {
    const tails = words.filter((word) => word[0] === letter).map((word) => word.slice(1));
    return `[${letter}${letter.toUpperCase()}]${otherScheme(tails, rest)}`;
  });
  branches.push(`[${others.replace("-", "\\-")}${others.replace(/[^a-z]/g, "").toUpperCase()}][A-Za-z0-9+.-]{0,30}`);
  return `(?:${branches.join("|")})${words.includes("") || first !== rest ? "" : "?"}`;
}

interface UriForms {
  absolute: string;
  reference: string;
}

/** RFC 3986, or RFC 3987 with the characters `beyond` ASCII in paths, queries and fragments. */
function uriForms(beyond: string): UriForms {
  const character = `(?:[${UNRESERVED}:@${beyond}]|${ENCODED})`;
  const path = `(?:/${character}*)*`;
  const rooted = `/(?:${character}+${path})?`;
  const rootless = `${character}+${path}`;
  const end = `(?:\\?(?:${character}|[/?])*)?(?:#(?:${character}|[/?])*)?`;
  const user = `(?:(?:[${UNRESERVED}:]|${ENCODED})*@)?`;
  const host = `(?:${NAMED_HOST}|${IPV4}|\\[${IPV6}\\])`;
  const authority = `//${user}${host}${PORT}`;
  const web = `(?:[Hh][Tt][Tt][Pp][Ss]?|[Ww][Ss][Ss]?|[Ff][Tt][Pp]):${authority}${path}`;
  const file = `[Ff][Ii][Ll][Ee]://(?:${NAMED_HOST})?/(?:${character}+${path})?`;
  const other = `${OTHER_SCHEME}:(?:${authority}${path}|${rooted}|${rootless})`;
  const withoutColon = `(?:[${UNRESERVED}@${beyond}]|${ENCODED})+`;
  const relative = `(?:${authority}${path}|${rooted}|${withoutColon}${path})?`;
  return {
    absolute: `(?:${web}|${file}|${other})${end}`,
    reference: `(?:${web}|${file}|${other}|${relative})${end}`,
  };
}

export const URI: UriForms = uriForms("");
export const IRI: UriForms = uriForms(BEYOND_ASCII);

/** Simpler mail addresses of at most 217, 130 and 52 characters. */
export const SHORT_EMAILS = [
  `${LOCAL_PART}@(?:${label(63)}\\.){1,2}[A-Za-z]{2,24}`,
  `${ATOM}{1,40}@(?:${label(31)}\\.){1,2}[A-Za-z]{2,24}`,
  "[A-Za-z0-9_+-]{1,20}@[a-z0-9]{1,20}\\.[a-z]{2,10}",
];

/** Simpler addresses of at most `max` characters: half for the host, the rest for path, query and fragment. */
export function shortUris(max: number): string[] {
  const labels = Math.min(6, Math.floor((max / 2 - 12) / 32));
  const host = labels > 0 ? `(?:${label(31)}\\.){0,${labels}}[A-Za-z]{2,10}` : "[a-z0-9]{1,20}\\.[a-z]{2,6}";
  const taken = "https://".length + (labels > 0 ? labels * 32 + 10 : 27);
  const part = Math.floor((max - taken) / 4) - 1;
  if (part < 1) return [];
  const end = `(?:/${CHARACTER}{0,${2 * part}})?(?:\\?${CHARACTER}{0,${part}})?(?:#${CHARACTER}{0,${part}})?`;
  return [`https?://${host}${end}`];
}
