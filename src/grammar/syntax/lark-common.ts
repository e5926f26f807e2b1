// Lark's `common` terminals, as regular expressions.

const WORD = "[A-Za-z]+";
const INTEGER = "[0-9]+";
const decimal = `(?:${INTEGER}\\.(?:${INTEGER})?|\\.${INTEGER})`;
const EXPONENT = "[eE][+-]?[0-9]+";
const float = `(?:${INTEGER}${EXPONENT}|${decimal}(?:${EXPONENT})?)`;
const number = `(?:${float}|${INTEGER})`;

const terminals: Record<string, string> = {
  DIGIT: "[0-9]",
  HEXDIGIT: "[a-fA-F0-9]",
  INT: INTEGER,
  SIGNED_INT: `[+-]?${INTEGER}`,
  DECIMAL: decimal,
  FLOAT: float,
  SIGNED_FLOAT: `[+-]?${float}`,
  NUMBER: number,
  SIGNED_NUMBER: `[+-]?${number}`,
  ESCAPED_STRING: '"(?:[^"\\\\\\n]|\\\\[^\\n])*"',
  LCASE_LETTER: "[a-z]",
  UCASE_LETTER: "[A-Z]",
  LETTER: "[A-Za-z]",
  WORD: WORD,
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
