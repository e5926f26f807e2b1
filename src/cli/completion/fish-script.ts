// Completion in fish: one line for each word, under the condition that its command is on the line.

import type { CommandEntry } from "./command-entries.ts";

export function fishScript(entries: readonly CommandEntry[]): string {
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
