// String formats as regular expressions over the decoded text. Each accepts a subset of what its standard allows, so
// that whatever is generated passes a validator.

const ipv4Part = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const ipv4 = `${ipv4Part}(?:\\.${ipv4Part}){3}`;
const hexGroup = "[0-9a-f]{1,4}";
const label = "[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?";
const hostname = `${label}(?:\\.${label}){0,5}`;
const leapYear = "(?:(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26]))|(?:(?:0[48]|[2468][048]|[13579][26])00))";
const date =
  "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))" +
  `|${leapYear}-02-29)`;
const clock = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?";
const offset = "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
const pathCharacter = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-F]{2})";
const address = `(?:/${pathCharacter}+)*/?(?:\\?(?:${pathCharacter}|[/?])*)?(?:#(?:${pathCharacter}|[/?])*)?`;

const formats: Record<string, string> = {
  date,
  time: `${clock}${offset}`,
  "date-time": `${date}T${clock}${offset}`,
  duration:
    "P(?:[0-9]{1,4}W|(?:[0-9]{1,4}Y)?(?:[0-9]{1,4}M)?[0-9]{1,4}D|(?:[0-9]{1,4}D)?T(?:[0-9]{1,4}H)?(?:[0-9]{1,4}M)?[0-9]{1,4}S|T[0-9]{1,4}H)",
  email: `[A-Za-z0-9_+-]{1,20}(?:\\.[A-Za-z0-9_+-]{1,20}){0,2}@${label}(?:\\.${label}){0,3}\\.[a-z]{2,10}`,
  hostname,
  ipv4,
  ipv6: `(?:(?:${hexGroup}:){7}${hexGroup}|(?:${hexGroup}:){1,6}:${hexGroup}|::${hexGroup}|::1)`,
  uuid: "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
  uuid4: "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
  uri: `https?://${hostname}(?::[1-9][0-9]{0,3})?${address}`,
  "uri-reference": `(?:https?://${hostname})?${address}`,
  "json-pointer": "(?:/(?:[^~/]|~[01])*)*",
};

const segment = "[A-Za-z0-9._~-]";
const query = "[A-Za-z0-9._~=&+-]";
const shortUris = [
  `https?://${hostname}(?:/${segment}{1,40}){0,20}(?:\\?${query}{1,200})?`, // at most 1,226 characters
  `https?://[a-z0-9]{1,20}(?:\\.[a-z0-9]{1,12})?\\.[a-z]{2,6}(?:/${segment}{1,30}){0,4}(?:\\?${query}{1,60})?`, // 233
  "https?://[a-z0-9]{1,20}\\.[a-z]{2,6}(?:/[A-Za-z0-9_-]{1,20})?", // 56
];

/** Parts of formats that are wide enough to be too complex together with a length, long ones first. */
const shortFormats: Record<string, readonly string[]> = {
  email: ["[A-Za-z0-9_+-]{1,20}@[a-z0-9]{1,20}\\.[a-z]{2,10}"], // 52
  uri: shortUris,
  "uri-reference": shortUris,
};

export function shortPatterns(name: string): readonly string[] {
  return Object.hasOwn(shortFormats, name) ? shortFormats[name]! : [];
}

/** What zod calls checks that it writes out as a pattern: beside one they say nothing more. */
const patternNames = new Set(["starts_with", "ends_with", "includes", "lowercase", "uppercase"]);

export function isPatternName(format: string): boolean {
  return patternNames.has(format);
}

export function formatPattern(name: string): string | null {
  return Object.hasOwn(formats, name) ? formats[name]! : null;
}

export function knownFormats(): string[] {
  return Object.keys(formats);
}
