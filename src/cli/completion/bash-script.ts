// Completion in bash: one function that finds the command on the line and looks its words up.

import type { CommandEntry } from "./command-entries.ts";

export function bashScript(entries: readonly CommandEntry[]): string {
  const paths = entries.filter(({ path }) => path !== "").map(({ path }) => `"${path}"`);
  const valued = entries.flatMap(({ path, options }) =>
    options.filter(({ takesValue }) => takesValue).map((option) => ({ at: `"${path} ${option.flag}"`, ...option })),
  );
  const choices = valued
    .filter(({ values }) => values.length > 0)
    .map(({ at, values }) => `    ${at}) found="${values.join(" ")}" ;;`);
  const files = valued.filter(({ values }) => values.length === 0).map(({ at }) => at);
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
      ${paths.join("|")}) at="$next" ;;
    esac
  done
  case "$at $prev" in
${choices.join("\n")}
    ${files.join("|")}) return ;;
    *) case "$at" in
${words.join("\n")}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$found" -- "$cur"))
}
complete -o default -F _flywheel flywheel`;
}
