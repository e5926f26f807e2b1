// `flywheel completion bash | zsh | fish`: prints a script that completes commands, options and their values, made from
// the commands themselves, so it always knows every option.

import type { Command, Option } from "commander";
import { OperatorError } from "../errors/operator-error.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;

export function addCompletionCommand(program: Command): void {
  program
    .command("completion")
    .description("Print a script that completes commands and options in your shell.")
    .argument("<SHELL>", SHELLS.join(", "))
    .addHelpText("after", HELP)
    .action((shell: string) => console.log(completionScript(program, shell)));
}

const HELP = `
Add one of these lines to your shell's start file:
  bash   source <(flywheel completion bash)        in ~/.bashrc
  zsh    source <(flywheel completion zsh)         in ~/.zshrc, after compinit
  fish   flywheel completion fish | source         in ~/.config/fish/config.fish`;

export function completionScript(program: Command, shell: string): string {
  const entries = entriesOf(program, "");
  if (shell === "bash") return bashScript(entries);
  // zsh runs completions for bash.
  if (shell === "zsh") return `autoload -U +X bashcompinit && bashcompinit\n${bashScript(entries)}`;
  if (shell === "fish") return fishScript(entries);
  throw new OperatorError(`there is no completion for ${shell}: choose ${SHELLS.join(", ")}`);
}

interface Entry {
  /** Words from the program on: "", "serve", "tokens create". */
  path: string;
  commands: { name: string; about: string }[];
  options: { flag: string; about: string; values: readonly string[]; takesValue: boolean }[];
}

/** The command and those below it. */
function entriesOf(command: Command, path: string): Entry[] {
  const below = command.commands.flatMap((child) =>
    [child.name(), ...child.aliases()].map((name) => ({ name, child })),
  );
  const commands = below.map(({ name, child }) => ({ name, about: child.description() }));
  const options = command.options.flatMap(optionEntry);
  const help = { flag: "--help", about: "show the options", values: [], takesValue: false };
  const entry = { path, commands, options: [...options, help] };
  return [entry, ...below.flatMap(({ name, child }) => entriesOf(child, `${path} ${name}`.trim()))];
}

function optionEntry(option: Option): Entry["options"] {
  if (!option.long) return [];
  const placeholder = /[<[](.+?)(\.\.\.)?[>\]]$/.exec(option.flags)?.[1] ?? "";
  const values =
    /^[\w-]+(\|[\w-]+)+$/.test(placeholder) && placeholder === placeholder.toLowerCase() ? placeholder.split("|") : [];
  const about = option.description.replace(/\s+/g, " ");
  return [{ flag: option.long, about, values, takesValue: placeholder !== "" }];
}

function bashScript(entries: readonly Entry[]): string {
  const paths = entries.filter(({ path }) => path !== "").map(({ path }) => `"${path}"`);
  const values = entries.flatMap(({ path, options }) =>
    options
      .filter((option) => option.values.length > 0)
      .map(({ flag, values }) => `    "${path} ${flag}") words="${values.join(" ")}" ;;`),
  );
  const files = entries.flatMap(({ path, options }) =>
    options.filter((option) => option.takesValue && option.values.length === 0).map(({ flag }) => `"${path} ${flag}"`),
  );
  const words = entries.map(({ path, commands, options }) => {
    const all = [...commands.map(({ name }) => name), ...options.map(({ flag }) => flag)];
    return `    "${path}") words="${all.join(" ")}" ;;`;
  });
  return `# Completes flywheel in bash and zsh. Made by: flywheel completion bash
_flywheel() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" path="" next words i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="\${path:+$path }\${COMP_WORDS[i]}"
    case "$next" in
      ${paths.join("|")}) path="$next" ;;
    esac
  done
  case "$path $prev" in
${values.join("\n")}
    ${files.join("|")}) return ;;
    *) case "$path" in
${words.join("\n")}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _flywheel flywheel`;
}

function fishScript(entries: readonly Entry[]): string {
  const quoted = (text: string) => `'${text.replace(/\\/g, "\\\\").replace(/'/g, "\\'")}'`;
  const lines = entries.flatMap(({ path, commands, options }) => {
    const condition =
      path === ""
        ? "__fish_use_subcommand"
        : path
            .split(" ")
            .map((word) => `__fish_seen_subcommand_from ${word}`)
            .join("; and ");
    return [
      ...commands.map(
        ({ name, about }) => `complete -c flywheel -n ${quoted(condition)} -f -a ${name} -d ${quoted(about)}`,
      ),
      ...options.map(({ flag, about, values, takesValue }) => {
        const value = values.length > 0 ? ` -x -a ${quoted(values.join(" "))}` : takesValue ? " -r" : "";
        return `complete -c flywheel -n ${quoted(condition)} -l ${flag.slice(2)}${value} -d ${quoted(about)}`;
      }),
    ];
  });
  return ["# Completes flywheel in fish. Made by: flywheel completion fish", ...lines].join("\n");
}
