// `flywheel completion bash | zsh | fish`: prints a script that completes commands, options and their values, made from
// the commands themselves, so it always knows every option.
import { Argument, type Command, type Option } from "commander";
import { REASONING_PARSERS } from "../text/reasoning.ts";
import { TOOL_CALL_PARSERS } from "../text/tools/tool-format.ts";

// What can be completed: every command with its options, their values, and the words that may follow it.

interface CommandEntry {
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
function commandEntries(command: Command, path = ""): CommandEntry[] {
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
function commandPatterns(entries: readonly CommandEntry[]): string {
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
function valuedOptions(entries: readonly CommandEntry[]): ValuedOptions {
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

// Completion in bash: one function that finds the command on the line and looks its words up.
function bashScript(entries: readonly CommandEntry[]): string {
  const { choices, filePatterns } = valuedOptions(entries);
  const values = choices.map(({ pattern, values }) => `    ${pattern}) found="${values.join(" ")}" ;;`);
  const words = entries.map(({ path, words, options }) => {
    const all = [...words.map(({ name }) => name), ...options.map(({ flag }) => flag)];
    return `    "${path}") found="${all.join(" ")}" ;;`;
  });
  return `# Completes flywheel in bash. Made by: flywheel completion bash
_flywheel() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" at="" next found="" i
  COMPREPLY=()
  # bash splits --option=value into three words
  if [[ "$cur" == "=" ]]; then cur=""
  elif [[ "$prev" == "=" ]]; then prev="\${COMP_WORDS[COMP_CWORD-2]}"
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="\${at:+$at }\${COMP_WORDS[i]}"
    case "$next" in
      ${commandPatterns(entries)}) at="$next" ;;
    esac
  done
  case "$at $prev" in
${values.join("\n")}
    ${filePatterns}) return ;;
    *) case "$at" in
${words.join("\n")}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$found" -- "$cur"))
}
complete -o default -F _flywheel flywheel`;
}

// Completion in fish: one line for each word, under the condition that its command is on the line.

function fishScript(entries: readonly CommandEntry[]): string {
  const paths = entries.filter(({ path }) => path !== "").map(({ path }) => quoted(path));
  const lines = entries.flatMap(({ path, words, options }) => {
    const when = `complete -c flywheel -n ${quoted(`__flywheel_at ${quoted(path)}`)}`;
    return [
      ...words.map(({ name, about }) => `${when} -f -a ${name} -d ${quoted(about)}`),
      ...options.map(({ flag, about, values, takesValue }) => {
        const value = values.length > 0 ? ` -x -a ${quoted(values.join(" "))}` : takesValue ? " -r" : "";
        return `${when} -l ${flag.slice(2)}${value} -d ${quoted(about)}`;
      }),
    ];
  });
  return `# Completes flywheel in fish. Made by: flywheel completion fish
function __flywheel_at
    set -l at ""
    for word in (commandline -opc)[2..-1]
        set -l next (string trim -- "$at $word")
        contains -- $next ${paths.join(" ")}; and set at $next
    end
    test "$at" = "$argv[1]"
end
${lines.join("\n")}`;
}

function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}

// Completion in zsh: one function that finds the command on the line and offers its words with their descriptions.

function zshScript(entries: readonly CommandEntry[]): string {
  const { choices, filePatterns } = valuedOptions(entries);
  const values = choices.map(({ pattern, values }) => `    ${pattern}) compadd -- ${values.join(" ")}; return ;;`);
  const words = entries.map(
    ({ path, words, options }) => `    "${path}")
      names=(${words.map(({ name, about }) => described(name, about)).join(" ")})
      flags=(${options.map(({ flag, about }) => described(flag, about)).join(" ")}) ;;`,
  );
  return `#compdef flywheel
# Completes flywheel in zsh. Made by: flywheel completion zsh
_flywheel() {
  local at="" next option="\${words[CURRENT-1]}" i
  local -a names flags
  for ((i = 2; i < CURRENT; i++)); do
    next="\${at:+$at }\${words[i]}"
    case "$next" in
      ${commandPatterns(entries)}) at="$next" ;;
    esac
  done
  if [[ "$PREFIX" == --*=* ]]; then
    option="\${PREFIX%%=*}"
    compset -P '*='
  fi
  case "$at $option" in
${values.join("\n")}
    ${filePatterns}) _files; return ;;
  esac
  case "$at" in
${words.join("\n")}
  esac
  if [[ "$PREFIX" == -* ]]; then _describe option flags
  elif (( $#names )); then _describe command names
  else _files || _describe option flags
  fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
compdef _flywheel flywheel`;
}

/** As _describe takes it: a name, a colon, and what it does. */
function described(name: string, about: string): string {
  return `'${`${name}:${about}`.replace(/'/g, "'\\''")}'`;
}

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript };
export type Shell = keyof typeof SCRIPTS;
export const SHELLS = Object.keys(SCRIPTS) as Shell[];

export function addCompletionCommand(program: Command): void {
  program
    .command("completion")
    .description("Print a script that completes commands and options in your shell.")
    .addArgument(new Argument("<SHELL>", "your shell").choices(SHELLS))
    .addHelpText("after", HELP)
    .action((shell: Shell) => console.log(completionScript(program, shell)));
}

const HELP = `
Add one of these lines to your shell's start file:
  bash   source <(flywheel completion bash)        in ~/.bashrc
  zsh    source <(flywheel completion zsh)         in ~/.zshrc
  fish   flywheel completion fish | source         in ~/.config/fish/config.fish`;

export function completionScript(program: Command, shell: Shell): string {
  return SCRIPTS[shell](commandEntries(program));
}
