// A bound on what is handed to a template: the number of values and how deeply they are nested. Checked without
// recursion, before the template library converts each value into one of its own at some cost.

const MAX_VALUES = 250_000;
const MAX_DEPTH = 400;

export function checkValueSize(value: unknown): void {
  const waiting: [value: unknown, depth: number][] = [[value, 0]];
  let count = 0;
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [current, depth] = next;
    if (typeof current !== "object" || current === null) continue;
    if (depth > MAX_DEPTH) throw new Error(`its variables are nested more than ${MAX_DEPTH} deep`);
    const inner = Object.values(current);
    count += inner.length;
    if (count > MAX_VALUES) throw new Error(`it would be given more than ${MAX_VALUES} values`);
    for (const item of inner) waiting.push([item, depth + 1]);
  }
}
