// What can be completed: every command with its options, their values, and the words that may follow it.

import type { Command, Option } from "commander";
import { REASONING_PARSERS } from "../../text/reasoning/reasoning-style.ts";
import { TOOL_CALL_PARSERS } from "../../text/tools/tool-format.ts";

export interface CommandEntry {
  /** Words from the program on: "", "serve", "tokens create". */
  path: string;
  /** Commands below it, or the choices of its argument. */
  words: { name: string; about: string }[];
  options: OptionEntry[];
}

export interface OptionEntry {
  /** With its dashes. */
  flag: string;
  about: string;
  takesValue: boolean;
  /** Its choices; empty = any text or file. */
  values: readonly string[];
}

/** Choices that the table of options does not have. */
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  "--reasoning-parser": REASONING_PARSERS,
  "--tool-call-parser": TOOL_CALL_PARSERS,
};

/** The command and those below it. */
export function commandEntries(command: Command, path = ""): CommandEntry[] {
  const below = command.commands.flatMap((child) =>
    [child.name(), ...child.aliases()].map((name) => ({ name, child })),
  );
  const choices = command.registeredArguments.flatMap(({ argChoices, description }) =>
    (argChoices ?? []).map((name) => ({ name, about: description })),
  );
  const words = [...below.map(({ name, child }) => ({ name, about: oneLine(child.description()) })), ...choices];
  const help = { flag: "--help", about: "show the options", values: [], takesValue: false };
  const entry = { path, words, options: [...command.options.flatMap(optionEntry), help] };
  return [entry, ...below.flatMap(({ name, child }) => commandEntries(child, `${path} ${name}`.trim()))];
}

/** The commands below the program, as patterns of a shell. */
export function commandPatterns(entries: readonly CommandEntry[]): string {
  return entries
    .filter(({ path }) => path !== "")
    .map(({ path }) => `"${path}"`)
    .join("|");
}

export interface ValuedOptions {
  choices: { pattern: string; values: readonly string[] }[];
  /** Of the options that take any text or file. */
  filePatterns: string;
}

/** Options that take a value, by patterns of a shell: a command and the option. */
export function valuedOptions(entries: readonly CommandEntry[]): ValuedOptions {
  const valued = entries.flatMap(({ path, options }) =>
    options.flatMap(({ flag, takesValue, values }) => (takesValue ? [{ pattern: `"${path} ${flag}"`, values }] : [])),
  );
  const files = valued.filter(({ values }) => values.length === 0);
  return {
    choices: valued.filter(({ values }) => values.length > 0),
    filePatterns: files.map(({ pattern }) => pattern).join("|"),
  };
}

function optionEntry(option: Option): OptionEntry[] {
  if (!option.long) return [];
  const placeholder = /[<[](.+?)(\.\.\.)?[>\]]$/.exec(option.flags)?.[1] ?? "";
  const isChoice = /^[a-z\d_-]+(\|[a-z\d_-]+)+$/.test(placeholder);
  const values = isChoice ? placeholder.split("|") : (CHOICES[option.long] ?? []);
  return [{ flag: option.long, about: oneLine(option.description), values, takesValue: placeholder !== "" }];
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ");
}
