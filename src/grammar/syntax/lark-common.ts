// Lark's `common` terminals, as regular expressions.

const word = "[A-Za-z]+";
const integer = "[0-9]+";
const decimal = `(?:${integer}\\.(?:${integer})?|\\.${integer})`;
const exponent = "[eE][+-]?[0-9]+";
const float = `(?:${integer}${exponent}|${decimal}(?:${exponent})?)`;
const number = `(?:${float}|${integer})`;

const terminals: Record<string, string> = {
  DIGIT: "[0-9]",
  HEXDIGIT: "[a-fA-F0-9]",
  INT: integer,
  SIGNED_INT: `[+-]?${integer}`,
  DECIMAL: decimal,
  FLOAT: float,
  SIGNED_FLOAT: `[+-]?${float}`,
  NUMBER: number,
  SIGNED_NUMBER: `[+-]?${number}`,
  ESCAPED_STRING: '"(?:[^"\\\\\\n]|\\\\[^\\n])*"',
  LCASE_LETTER: "[a-z]",
  UCASE_LETTER: "[A-Z]",
  LETTER: "[A-Za-z]",
  WORD: word,
  CNAME: "[A-Za-z_][A-Za-z0-9_]*",
  WS_INLINE: "[ \\t]+",
  WS: "[ \\t\\f\\r\\n]+",
  CR: "\\r",
  LF: "\\n",
  NEWLINE: "(?:\\r?\\n)+",
  SH_COMMENT: "#[^\\n]*",
  CPP_COMMENT: "//[^\\n]*",
  C_COMMENT: "/\\*(?:[^*]|\\*+[^*/])*\\*+/",
  SQL_COMMENT: "--[^\\n]*",
  PYTHON_COMMENT: "#[^\\n]*",
};

export function commonTerminal(name: string): string | null {
  return Object.hasOwn(terminals, name) ? terminals[name]! : null;
}
