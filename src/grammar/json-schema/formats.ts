// String formats as regular expressions over the decoded text. Each accepts a subset of what its standard allows, so
// that whatever is generated passes a validator.

const IPV4_PART = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const ipv4 = `${IPV4_PART}(?:\\.${IPV4_PART}){3}`;
const HEX_GROUP = "[0-9a-f]{1,4}";
const LABEL = "[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?";
const hostname = `${LABEL}(?:\\.${LABEL}){0,5}`;
// The URL standard reads a last label that begins with a digit as a number, and rejects most of them.
const uriHost = `(?:(?:${LABEL}\\.){0,5}[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?|${ipv4})`;
const LEAP_YEAR = "(?:(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26]))|(?:(?:0[48]|[2468][048]|[13579][26])00))";
const date =
  "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))" +
  `|${LEAP_YEAR}-02-29)`;
const CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?";
const OFFSET = "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
const PATH_CHARACTER = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-F]{2})";
const address = `(?:/${PATH_CHARACTER}+)*/?(?:\\?(?:${PATH_CHARACTER}|[/?])*)?(?:#(?:${PATH_CHARACTER}|[/?])*)?`;

const ipv6 = `(?:(?:${HEX_GROUP}:){7}${HEX_GROUP}|(?:${HEX_GROUP}:){1,6}:${HEX_GROUP}|::${HEX_GROUP}|::1)`;
const cidrv4 = `${ipv4}/(?:[12]?[0-9]|3[0-2])`;
const cidrv6 = `${ipv6}/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9])`;
// Networks have no bits set beyond their prefix.
const network4 = `(?:${ipv4}/32|(?:${IPV4_PART}\\.){3}0/24|(?:${IPV4_PART}\\.){2}0\\.0/16|${IPV4_PART}\\.0\\.0\\.0/8)`;
const network6 = `(?:${ipv6}/128|(?:${HEX_GROUP}:){1,4}:/64|(?:${HEX_GROUP}:){1,3}:/48|(?:${HEX_GROUP}:){1,2}:/32)`;
const BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?";

function uuid(version: string): string {
  return `[0-9a-f]{8}-[0-9a-f]{4}-${version}[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`;
}

const formats: Record<string, string> = {
  date,
  time: `${CLOCK}${OFFSET}`,
  "date-time": `${date}T${CLOCK}${OFFSET}`,
  duration:
    "P(?:[0-9]{1,4}W|(?:[0-9]{1,4}Y)?(?:[0-9]{1,4}M)?[0-9]{1,4}D|(?:[0-9]{1,4}D)?T(?:[0-9]{1,4}H)?(?:[0-9]{1,4}M)?[0-9]{1,4}S|T[0-9]{1,4}H)",
  email: `[A-Za-z0-9_+-]{1,20}(?:\\.[A-Za-z0-9_+-]{1,20}){0,2}@${LABEL}(?:\\.${LABEL}){0,3}\\.[a-z]{2,10}`,
  hostname,
  ipv4,
  ipv6,
  uuid: "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
  ...Object.fromEntries(Array.from("12345678", (version) => [`uuid${version}`, uuid(version)])),
  uri: `https?://${uriHost}(?::[1-9][0-9]{0,3})?${address}`,
  "uri-reference": `(?:https?://${uriHost})?${address}`,
  "json-pointer": "(?:/(?:[^~/]|~[01])*)*",
  ipvanyaddress: `(?:${ipv4}|${ipv6})`,
  ipv4interface: cidrv4,
  ipv6interface: cidrv6,
  ipvanyinterface: `(?:${cidrv4}|${cidrv6})`,
  ipv4network: network4,
  ipv6network: network6,
  ipvanynetwork: `(?:${network4}|${network6})`,
  cidrv4,
  cidrv6,
  mac: "(?:[0-9a-f]{2}:){5}[0-9a-f]{2}",
  byte: BASE64,
  base64: BASE64,
  base64url: "(?:[A-Za-z0-9_-]{4})*", // whole groups: some readers want padding after others, some want none
  hex: "(?:[0-9a-f]{2})*",
  e164: "\\+[1-9][0-9]{6,14}",
  nanoid: "[A-Za-z0-9_-]{21}",
  cuid: "c[0-9a-z]{24}",
  cuid2: "[a-z][0-9a-z]{1,31}",
  ulid: "[0-7][0-9A-HJKMNP-TV-Z]{25}",
  xid: "[0-9a-v]{20}",
  ksuid: "[A-Za-z0-9]{27}",
};

const SEGMENT = "[A-Za-z0-9._~-]";
const QUERY = "[A-Za-z0-9._~=&+-]";
const SHORT_URIS = [
  `https?://${uriHost}(?:/${SEGMENT}{1,40}){0,20}(?:\\?${QUERY}{1,200})?`, // at most 1,226 characters
  `https?://[a-z0-9]{1,20}(?:\\.[a-z0-9]{1,12})?\\.[a-z]{2,6}(?:/${SEGMENT}{1,30}){0,4}(?:\\?${QUERY}{1,60})?`, // 233
  "https?://[a-z0-9]{1,20}\\.[a-z]{2,6}(?:/[A-Za-z0-9_-]{1,20})?", // 56
];

/** Parts of formats that are wide enough to be too complex together with a length, long ones first. */
const shortFormats: Record<string, readonly string[]> = {
  email: ["[A-Za-z0-9_+-]{1,20}@[a-z0-9]{1,20}\\.[a-z]{2,10}"], // 52
  uri: SHORT_URIS,
  "uri-reference": SHORT_URIS,
};

export function shortPatterns(name: string): readonly string[] {
  return Object.hasOwn(shortFormats, name) ? shortFormats[name]! : [];
}

/** What zod calls checks that it writes out as a pattern: beside one they say nothing more. */
const patternNames =
  /^(?:starts_with|ends_with|includes|lowercase|uppercase|emoji|(?:md5|sha1|sha256|sha384|sha512)_(?:hex|base64|base64url))$/;

export function isPatternName(format: string): boolean {
  return patternNames.test(format);
}

/** Hints for whoever shows or stores the text: any text has them. */
const FREE_FORMATS = new Set(["password", "binary", "path"]);

export function isFreeFormat(format: string): boolean {
  return FREE_FORMATS.has(format);
}

/** zod's pattern beside the format hostname. What is generated for that format has labels and lengths within it. */
const hostnamePattern =
  "^(?=.{1,253}\\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\\.?$";

/** The pattern says nothing that the format's own form does not: together they would be a large automaton. */
export function isImplied(pattern: string, format: string): boolean {
  return format === "hostname" && pattern === hostnamePattern;
}

export function formatPattern(name: string): string | null {
  return Object.hasOwn(formats, name) ? formats[name]! : null;
}

export function knownFormats(): string[] {
  return [...Object.keys(formats), ...FREE_FORMATS];
}
