// Completion in bash: one function that finds the command on the line and looks its words up.

import { type CommandEntry, commandPatterns, valuedOptions } from "./command-entries.ts";

export function bashScript(entries: readonly CommandEntry[]): string {
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
