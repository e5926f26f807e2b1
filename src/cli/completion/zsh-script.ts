// Completion in zsh: one function that finds the command on the line and offers its words with their descriptions.

import { type CommandEntry, commandPatterns, valuedOptions } from "./command-entries.ts";

export function zshScript(entries: readonly CommandEntry[]): string {
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
