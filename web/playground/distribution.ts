// How often each answer was given: n samples as a small table.

export interface Answer {
  text: string;
  count: number;
  /** Numbers of the replies. */
  replies: number[];
}

/** Answers that differ only in case, space and final punctuation count as one. The most frequent first. */
export function distribution(texts: readonly string[]): Answer[] {
  const found = new Map<string, Answer>();
  texts.forEach((text, i) => {
    const key = normalised(text);
    const answer = found.get(key) ?? { text: text.trim(), count: 0, replies: [] };
    answer.count++;
    answer.replies.push(i);
    found.set(key, answer);
  });
  return [...found.values()].sort((a, b) => b.count - a.count || a.replies[0]! - b.replies[0]!);
}

function normalised(text: string): string {
  return text
    .trim()
    .toLowerCase()
    .replaceAll(/\s+/g, " ")
    .replace(/[.!?]+$/, "");
}
