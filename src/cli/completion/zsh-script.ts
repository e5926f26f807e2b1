// Completion in zsh: one function that finds the command on the line and offers its words with their descriptions.

import type { CommandEntry } from "./command-entries.ts";

export function zshScript(entries: readonly CommandEntry[]): string {
  const paths = entries.filter(({ path }) => path !== "").map(({ path }) => `"${path}"`);
  const valued = entries.flatMap(({ path, options }) =>
    options.filter(({ takesValue }) => takesValue).map((option) => ({ at: `"${path} ${option.flag}"`, ...option })),
  );
  const choices = valued
    .filter(({ values }) => values.length > 0)
    .map(({ at, values }) => `    ${at}) compadd -- ${values.join(" ")}; return ;;`);
  const files = valued.filter(({ values }) => values.length === 0).map(({ at }) => at);
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
      ${paths.join("|")}) at="$next" ;;
    esac
  done
  if [[ "$PREFIX" == --*=* ]]; then
    option="\${PREFIX%%=*}"
    compset -P '*='
  fi
  case "$at $option" in
${choices.join("\n")}
    ${files.join("|")}) _files; return ;;
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
