/** Names that an object of the text has twice. */
export function repeatedNames(text: string): string[] {
  const repeated: string[] = [];
  const open: Set<string>[] = [];
  for (const [token, name] of text.matchAll(/("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (token === "{") open.push(new Set());
    else if (token === "}") open.pop();
    else if (name !== undefined) {
      const decoded = JSON.parse(name) as string;
      if (open.at(-1)!.has(decoded)) repeated.push(decoded);
      open.at(-1)!.add(decoded);
    }
  }
  return repeated;
}
