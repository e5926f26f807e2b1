// A piece of code: its language, a button that copies it, and its words in colours.
import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { CopyButton } from "../parts/copy-button.tsx";
import { useOverflow } from "../parts/use-overflow.ts";
import { isColourable, languageOf } from "./languages.ts";

/** Loaded with the first code that has a language. */
const colours = signal<typeof import("./highlight.ts") | null>(null);
let isLoading = false;

function load(): void {
  if (isLoading) return;
  isLoading = true;
  void import("./highlight.ts").then(
    (found) => {
      colours.value = found;
    },
    () => {}, // the server is gone, or has another version of the page: code is read without colours too
  );
}

/** `info`: the words behind the fence. */
export function Code({ text, info, isOpen }: { text: string; info: string; isOpen: boolean }) {
  const { name, grammar } = languageOf(info);
  const { box, isWider } = useOverflow<HTMLPreElement>();
  const isColoured = grammar !== null && isColourable(text, isOpen);
  useEffect(() => {
    if (isColoured) load();
  }, [isColoured]);
  const runs = useMemo(
    () => (isColoured ? (colours.value?.runsOf(text, grammar) ?? null) : null),
    [text, isColoured, grammar, colours.value],
  );
  return (
    <figure class="code" dir="ltr">
      <figcaption>
        <span>{name}</span>
        <CopyButton text={text} what="the code" />
      </figcaption>
      <pre ref={box} tabIndex={isWider ? 0 : undefined}>
        <code>
          {runs === null
            ? text
            : runs.map(([part, kind], i) =>
                kind === null ? (
                  part
                ) : (
                  <span key={i} class={`code-${kind}`}>
                    {part}
                  </span>
                ),
              )}
        </code>
      </pre>
    </figure>
  );
}
