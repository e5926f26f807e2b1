// Where a JSON pointer such as #/properties/a leads in the text of a document.

/** Offset of the value; of the nearest value around it if the pointer leads nowhere. The text must be valid JSON. */
export function placeOfPointer(text: string, pointer: string): number {
  const names = pointer
    .replace(/^#\/?/, "")
    .split("/")
    .filter((name) => name !== "")
    .map((name) => decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~"));
  let offset = skipSpace(text, 0);
  for (const name of names) {
    const inner = childAt(text, offset, name);
    if (inner === null) break;
    offset = inner;
  }
  return offset;
}

/** Offset of a member or an element of the value at `offset`. */
function childAt(text: string, offset: number, name: string): number | null {
  const isObject = text[offset] === "{";
  if (!isObject && text[offset] !== "[") return null;
  let at = skipSpace(text, offset + 1);
  for (let index = 0; at < text.length && text[at] !== "}" && text[at] !== "]"; index++) {
    let key = String(index);
    if (isObject) {
      const end = endOfValue(text, at);
      key = JSON.parse(text.slice(at, end)) as string;
      at = skipSpace(text, skipSpace(text, end) + 1); // the colon
    }
    if (key === name) return at;
    at = skipSpace(text, endOfValue(text, at));
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return null;
}

function skipSpace(text: string, offset: number): number {
  let at = offset;
  while (/\s/.test(text[at] ?? "")) at++;
  return at;
}

/** Offset behind the value that begins here. */
function endOfValue(text: string, offset: number): number {
  let depth = 0;
  for (let at = offset; at < text.length; at++) {
    const sign = text[at]!;
    if (sign === '"') {
      for (at++; text[at] !== '"'; at++) if (text[at] === "\\") at++;
    } else if (sign === "{" || sign === "[") depth++;
    else if (sign === "}" || sign === "]") depth--;
    else if (/[^,:\s]/.test(sign) && /[,:\s}\]]|undefined/.test(String(text[at + 1])) && depth === 0) return at + 1;
    if (depth === 0 && /["}\]]/.test(sign)) return at + 1;
    if (depth < 0) return at;
  }
  return text.length;
}
