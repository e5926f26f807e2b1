// A bound on what is handed to a template: the number of values and how deeply they are nested. Checked without
// recursion, before the template library converts each value into one of its own at some cost.

const maxValues = 250_000;
const maxDepth = 400;

export function checkValueSize(value: unknown): void {
  const waiting: [value: unknown, depth: number][] = [[value, 0]];
  let count = 0;
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [current, depth] = next;
    if (typeof current !== "object" || current === null) continue;
    if (depth > maxDepth) throw new Error(`its variables are nested more than ${maxDepth} deep`);
    const inner = Object.values(current);
    count += inner.length;
    if (count > maxValues) throw new Error(`it would be given more than ${maxValues} values`);
    for (const item of inner) waiting.push([item, depth + 1]);
  }
}
