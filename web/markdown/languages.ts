// Languages by the names that fences give them.

/** What is shown → the grammar that colours it (null: none), and further names. */
const LANGUAGES: readonly (readonly [shown: string, grammar: string | null, ...names: string[]])[] = [
  ["Assembly", "asm", "asm", "assembly", "nasm"],
  ["Bash", "bash", "bash", "sh", "shell", "zsh", "console", "shellscript"],
  ["C", "c", "c", "h"],
  ["C++", "c", "cpp", "c++", "hpp", "cc"],
  ["C#", null, "csharp", "cs", "c#"],
  ["CSS", "css", "css", "scss", "less"],
  ["CSV", "csv", "csv"],
  ["Diff", "diff", "diff", "patch"],
  ["Dockerfile", "docker", "docker", "dockerfile", "containerfile"],
  ["Go", "go", "go", "golang"],
  ["HTML", "html", "html", "htm", "vue", "svelte"],
  ["HTTP", "http", "http"],
  ["INI", "ini", "ini", "conf", "properties"],
  ["Java", "java", "java"],
  ["JavaScript", "js", "javascript", "js", "jsx", "mjs", "cjs", "node"],
  ["JSON", "json", "json", "jsonc", "json5", "jsonl"],
  ["Kotlin", null, "kotlin", "kt"],
  ["LaTeX", null, "latex", "tex"],
  ["Lua", "lua", "lua"],
  ["Makefile", "make", "make", "makefile"],
  ["Markdown", "md", "markdown", "md"],
  ["Perl", "pl", "perl", "pl"],
  ["PHP", null, "php"],
  ["Python", "py", "python", "py", "python3", "py3", "pycon"],
  ["R", null, "r"],
  ["Regular expression", "regex", "regex", "regexp"],
  ["Ruby", null, "ruby", "rb"],
  ["Rust", "rs", "rust", "rs"],
  ["SQL", "sql", "sql", "mysql", "postgresql", "sqlite", "plpgsql"],
  ["Swift", null, "swift"],
  ["Text", null, "text", "txt", "plain", "plaintext", ""],
  ["TOML", "toml", "toml"],
  ["TypeScript", "ts", "typescript", "ts", "tsx", "mts"],
  ["XML", "xml", "xml", "svg"],
  ["YAML", "yaml", "yaml", "yml"],
];

const BY_NAME = new Map(
  LANGUAGES.flatMap(([shown, grammar, ...names]) => names.map((name) => [name, { name: shown, grammar }] as const)),
);
const LONGEST_NAME = 30;

/** `info`: what is behind the fence, "python title=x" or "{.python}". A language that is not known keeps its name. */
export function languageOf(info: string): { name: string; grammar: string | null } {
  const word = (/^\{?\.?([^\s{},:]*)/.exec(info.trim())?.[1] ?? "").slice(0, LONGEST_NAME);
  return BY_NAME.get(word.toLowerCase()) ?? { name: word, grammar: null };
}

/** In UTF-16 code units. Code that grows is coloured again for every token. */
const LONGEST = 15_000;
const LONGEST_GROWING = 4_000;
const LONGEST_LINE = 1_000;

/**
 * Longer code has no colours: nobody reads them. Nor has code with a line that nobody would write: finding its words takes the
 * square of the line's length.
 */
export function isColourable(code: string, isGrowing: boolean): boolean {
  if (code.length > (isGrowing ? LONGEST_GROWING : LONGEST)) return false;
  return code.split("\n").every((line) => line.length <= LONGEST_LINE);
}
