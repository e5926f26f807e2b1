// A text with what somebody looks for in it marked.
export interface MarkedProps {
  text: string;
  /** In any case; "" marks nothing. */
  wanted: string;
}

export function Marked({ text, wanted }: MarkedProps) {
  if (wanted === "") return <>{text}</>;
  return <>{partsOf(text, wanted).map(({ part, isFound }, i) => (isFound ? <mark key={i}>{part}</mark> : part))}</>;
}

/** Marks beyond these help nobody, and cost time. */
const MOST_MARKS = 1000;

export function partsOf(text: string, wanted: string): { part: string; isFound: boolean }[] {
  const parts: { part: string; isFound: boolean }[] = [];
  // lower case may be longer than the text, as of "\u0130": then places do not agree, and nothing is marked
  const [low, needle] = [text.toLowerCase(), wanted.toLowerCase()];
  if (low.length !== text.length || needle === "") return [{ part: text, isFound: false }];
  let from = 0;
  for (let marks = 0; marks < MOST_MARKS; marks++) {
    const at = low.indexOf(needle, from);
    if (at < 0) break;
    if (at > from) parts.push({ part: text.slice(from, at), isFound: false });
    parts.push({ part: text.slice(at, at + needle.length), isFound: true });
    from = at + needle.length;
  }
  if (from < text.length) parts.push({ part: text.slice(from), isFound: false });
  return parts;
}
