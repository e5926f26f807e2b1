// The finished automaton in flat arrays, as the matcher runs it and as it travels between threads. Every state can be
// reached and can lead to a complete text, so a matcher that is alive can always finish.

export interface Program {
  /** Byte -> class, 256 entries. Bytes of one class behave alike everywhere in this program. */
  readonly classes: Int32Array;
  readonly classCount: number;
  /** Start state per rule, -1 = cannot be matched; rule 0 is the root, rule 1 what follows the marker. */
  readonly starts: Int32Array;
  /** Bytes of the token that leads to rule 1 at the very beginning; empty = there is none. */
  readonly marker: Int32Array;
  /** Per state, 1 = its rule may end here. */
  readonly finals: Int32Array;
  /** Per state, 1 = nothing can follow in its rule: a call that returns here needs no stack entry. */
  readonly tails: Int32Array;
  /** Per state, a state with the same next-token mask (often itself). */
  readonly maskLike: Int32Array;
  /** Per state, 1 = entered by a bracket or comma of an array whose items must differ; empty = there is none. */
  readonly marks: Int32Array;
  /** Edges in compressed rows: row s is offsets[s]..offsets[s + 1]. */
  readonly byteOffsets: Int32Array;
  /** low class | high class << 8, target. Two entries per edge. */
  readonly byteEdges: Int32Array;
  readonly epsilonOffsets: Int32Array;
  readonly epsilonEdges: Int32Array;
  readonly callOffsets: Int32Array;
  /** rule, return state. Two entries per edge. */
  readonly callEdges: Int32Array;
}

const FIELDS = [
  "classes",
  "starts",
  "marker",
  "finals",
  "tails",
  "maskLike",
  "marks",
  "byteOffsets",
  "byteEdges",
  "epsilonOffsets",
  "epsilonEdges",
  "callOffsets",
  "callEdges",
] as const;

/** The program as a one-byte-per-character string: lengths first, then the arrays, little-endian 32-bit. */
export function packProgram(program: Program): string {
  const total = FIELDS.reduce((sum, field) => sum + program[field].length, 0);
  const words = new Int32Array(1 + FIELDS.length + total);
  words[0] = program.classCount;
  let at = 1 + FIELDS.length;
  for (const [index, field] of FIELDS.entries()) {
    words[1 + index] = program[field].length;
    words.set(program[field], at);
    at += program[field].length;
  }
  return Buffer.from(words.buffer).toString("latin1");
}

export function unpackProgram(packed: string): Program {
  const words = new Int32Array(packed.length >> 2);
  Buffer.from(words.buffer).write(packed, "latin1");
  let at = 1 + FIELDS.length;
  const arrays = FIELDS.map((_, index) => {
    const length = words[1 + index]!;
    at += length;
    return words.subarray(at - length, at);
  });
  const named = Object.fromEntries(FIELDS.map((field, index) => [field, arrays[index]!]));
  return { classCount: words[0]!, ...(named as Omit<Program, "classCount">) };
}
