// Turns the table of options into command-line flags, grouped for --help, and reads back the values that were given.
import { type Command, Option as Flag } from "commander";
import type { Option } from "../config/option.ts";
import { envName, flagName, OPTIONS, type OptionName } from "../config/options.ts";

/** Adds a flag for each option, or only for those named. */
export function addOptionFlags(command: Command, only = Object.keys(OPTIONS) as readonly OptionName[]): void {
  for (const name of only) {
    const option = OPTIONS[name] as Option<unknown>;
    const flag = flagName(name);
    if (option.placeholder === null) {
      const shown = option.default === true ? `--no-${flag}` : `--${flag}`;
      for (const form of [`--${flag}`, `--no-${flag}`]) {
        const made = new Flag(form, describe(name, option)).helpGroup(`${option.group}:`);
        command.addOption(form === shown ? made : made.hideHelp());
      }
    } else {
      const value = option.repeatable ? `<${option.placeholder}...>` : `<${option.placeholder}>`;
      command.addOption(new Flag(`--${flag} ${value}`, describe(name, option)).helpGroup(`${option.group}:`));
    }
  }
}

/** The options given on the command line, by name. */
export function givenFlags(command: Command): Partial<Record<OptionName, unknown>> {
  const values = command.opts() as Record<string, unknown>;
  return Object.fromEntries(Object.entries(values).filter(([name]) => name in OPTIONS));
}

/** The first list flag with several values in a row. Such a flag takes every value up to the next flag. */
export function flagWithSeveralValues(written: readonly string[]): string | null {
  const argv = written.map(dashed);
  const lists = (Object.keys(OPTIONS) as OptionName[]).filter((name) => OPTIONS[name].repeatable).map(flagName);
  const isValue = (word: string | undefined) => word !== undefined && !word.startsWith("-");
  const at = argv.findIndex((word, i) => lists.includes(word.slice(2)) && isValue(argv[i + 1]) && isValue(argv[i + 2]));
  return at === -1 ? null : argv[at]!;
}

/** Rewrites `--max_model_len` as `--max-model-len`. */
export function dashed(argument: string): string {
  return /^--\w[\w-]*(=|$)/.test(argument)
    ? argument.replace(/^--[\w-]+/, (name) => `--${name.slice(2).replaceAll("_", "-")}`)
    : argument;
}

function describe(name: OptionName, option: Option<unknown>): string {
  const help =
    option.placeholder === null && option.default === true ? `Disables this default: ${option.help}` : option.help;
  const initial = shownDefault(option);
  return `${help}${initial === null ? "" : ` (default ${initial})`} [${envName(name)}]`;
}

function shownDefault(option: Option<unknown>): string | null {
  const value = option.default;
  if (value === null || typeof value === "boolean" || option.secret) return null;
  const text = typeof value === "string" || typeof value === "number" ? String(value) : JSON.stringify(value);
  return text === "[]" || text === "{}" ? null : text;
}
