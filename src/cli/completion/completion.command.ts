// `flywheel completion bash | zsh | fish`: prints a script that completes commands, options and their values, made from
// the commands themselves, so it always knows every option.

import { Argument, type Command } from "commander";
import { bashScript } from "./bash-script.ts";
import { commandEntries } from "./command-entries.ts";
import { fishScript } from "./fish-script.ts";
import { zshScript } from "./zsh-script.ts";

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
