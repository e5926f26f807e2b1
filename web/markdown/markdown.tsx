// An answer as it is meant to be read: Markdown with code, tables and mathematics.
import { useEffect, useMemo, useReducer } from "preact/hooks";
import { Reader } from "./reader.ts";

/** `isGrowing`: more of the text will come. */
export function Markdown({ text, isGrowing = false }: { text: string; isGrowing?: boolean }) {
  const reader = useMemo(() => new Reader(), []);
  const [, again] = useReducer((times: number) => times + 1, 0);
  const blocks = reader.read(text, isGrowing);
  const { wait } = reader;
  useEffect(() => {
    if (wait === null) return;
    const timer = setTimeout(again, wait);
    return () => clearTimeout(timer);
  });
  return <div class="markdown">{blocks}</div>;
}
