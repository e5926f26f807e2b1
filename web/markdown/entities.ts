// Characters that are written by name: &amp; is &. Those by number are read by the lexer; a name that is not here stays as it is.
const CHARACTERS: Readonly<Record<string, string>> = {
  ...{
    amp: "&",
    lt: "<",
    gt: ">",
    quot: '"',
    apos: "'",
    nbsp: "\u00a0",
    ensp: "\u2002",
    emsp: "\u2003",
    shy: "\u00ad",
  },
  ...{ ndash: "–", mdash: "—", hellip: "…", bull: "•", middot: "·", laquo: "«", raquo: "»", lsquo: "‘", rsquo: "’" },
  ...{ ldquo: "“", rdquo: "”", copy: "©", reg: "®", trade: "™", deg: "°", euro: "€", pound: "£", yen: "¥", sect: "§" },
  ...{
    times: "×",
    divide: "÷",
    plusmn: "±",
    minus: "−",
    le: "≤",
    ge: "≥",
    ne: "≠",
    asymp: "≈",
    infin: "∞",
    radic: "√",
  },
  ...{
    larr: "←",
    uarr: "↑",
    rarr: "→",
    darr: "↓",
    harr: "↔",
    check: "✓",
    frac12: "½",
    sup2: "²",
    sup3: "³",
    micro: "µ",
  },
};

export function withCharacters(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(\w{2,8});/g, (raw, name: string) =>
    Object.hasOwn(CHARACTERS, name) ? CHARACTERS[name]! : raw,
  );
}
