// The lines of a text that arrives in pieces. Only "\n" ends a line. node:readline of newer Node versions also splits at
// U+2028 and U+2029, which JSON strings may contain.

export async function* linesOf(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = "";
  for await (const piece of pieces) {
    const [first, ...others] = piece.split("\n");
    rest += first;
    for (const other of others) {
      yield rest;
      rest = other;
    }
  }
  if (rest !== "") yield rest;
}
