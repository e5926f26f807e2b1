import { describe, expect, it } from "vitest";
import { encodeFrame, type Frame, FrameReader, ProtocolError } from "./frames.ts";

const bytesOf = (...frame: Parameters<typeof encodeFrame>): Buffer => Buffer.concat(encodeFrame(...frame));
const read = (bytes: Buffer): Frame[] => [...new FrameReader().push(bytes)];

/** A frame with any header and tail. */
function raw(header: string, tail = Buffer.alloc(0)): Buffer {
  const json = Buffer.from(header);
  const prefix = Buffer.alloc(8);
  prefix.writeUInt32LE(json.length, 0);
  prefix.writeUInt32LE(tail.length, 4);
  return Buffer.concat([prefix, json, tail]);
}

/** Numbers in [0, 1) that the same seed repeats. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const EXAMPLE = bytesOf(
  { type: "step", step: 3, faults: [], text: "ä" },
  {
    rows: Uint32Array.of(1, 2 ** 32 - 1, 3),
    finish: Uint8Array.of(0, 1, 2),
    logprobs: Float32Array.of(-1.5, Number.NEGATIVE_INFINITY),
    bits: { values: Int32Array.of(-1, 2, 3, 4), shape: [2, 2] },
    none: new Int32Array(0),
  },
);

describe("frames", () => {
  it("come out as they went in, however they are cut", () => {
    const stream = Buffer.concat([EXAMPLE, bytesOf({ type: "ping" }), EXAMPLE]);
    for (const size of [1, 3, 8, 64, 100, stream.length]) {
      const reader = new FrameReader();
      const frames: Frame[] = [];
      for (let at = 0; at < stream.length; at += size) frames.push(...reader.push(stream.subarray(at, at + size)));
      expect(frames.map(({ type }) => type)).toEqual(["step", "ping", "step"]);
      const last = frames[2]!;
      expect([last.number("step"), last.text("text")]).toEqual([3, "ä"]);
      expect([...last.array("rows", "u32", 3)]).toEqual([1, 2 ** 32 - 1, 3]);
      expect([...last.array("finish", "u8")]).toEqual([0, 1, 2]);
      expect([...last.array("logprobs", "f32")]).toEqual([-1.5, Number.NEGATIVE_INFINITY]);
      expect([...last.array("bits", "i32")]).toEqual([-1, 2, 3, 4]);
      expect(last.array("none", "i32")).toHaveLength(0);
    }
  });

  it("are refused before anything is allocated when they claim too much", () => {
    for (const [header, tail] of [
      [2 ** 24 + 1, 0],
      [2 ** 32 - 1, 0],
      [1, 0],
      [0, 8],
      [2, 2 ** 28 + 1],
    ] as const) {
      const prefix = Buffer.alloc(8);
      prefix.writeUInt32LE(header, 0);
      prefix.writeUInt32LE(tail, 4);
      expect(() => read(prefix)).toThrow(ProtocolError);
    }
    expect(() => encodeFrame({ type: "x", long: "a".repeat(2 ** 24) })).toThrow(RangeError);
  });

  it("are refused when their arrays do not fit, or say nothing", () => {
    const tail = Buffer.alloc(16);
    const arrays = (list: unknown) => raw(JSON.stringify({ type: "x", arrays: list }), tail);
    for (const list of [
      ...[
        5,
        [],
        [["a"]],
        [["a", "f64", [1], 0]],
        [["a", "i32", [5], 0]],
        [["a", "i32", [1], 4]],
        [["a", "i32", [1], 16]],
      ],
      ...[
        [["a", "i32", [-1], 0]],
        [["a", "i32", [1.5], 0]],
        [["a", "i32", [1e300, 1e300], 0]],
        [["a", "toString", [1], 0]],
      ],
      ...[
        [
          ["a", "u8", [9], 0],
          ["b", "u8", [1], 8],
        ],
        [
          ["a", "u8", [1], 0],
          ["a", "u8", [1], 8],
        ],
        [["a", "u8", 1, 0]],
      ],
      [["a", "u8", [1], "0"]],
    ]) {
      expect(() => read(arrays(list)), JSON.stringify(list)).toThrow(ProtocolError);
    }
    for (const header of ["[]", "nul", "{}", '{"type":5}', '"step"'])
      expect(() => read(raw(header))).toThrow(ProtocolError);
    const [frame] = read(EXAMPLE) as [Frame];
    expect(() => frame.array("rows", "i32")).toThrow('"step": no i32 array "rows"');
    expect(() => frame.array("rows", "u32", 2)).toThrow('3 values of "rows", expected 2');
    expect(() => frame.number("text")).toThrow('no number "text"');
    expect(() => frame.text("nothing")).toThrow(ProtocolError);
    expect(() => frame.object("faults")).toThrow(ProtocolError);
  });

  it("end in a protocol error or in frames, never otherwise, whatever bytes come", () => {
    const next = random(Number(process.env.FLYWHEEL_PROPERTY_SEED ?? 1));
    for (let round = 0; round < 3000; round++) {
      const bytes = Buffer.from(EXAMPLE);
      const changes = 1 + Math.floor(next() * 4);
      // The header more often than the tail.
      for (let i = 0; i < changes; i++) bytes[Math.floor(next() ** 2 * bytes.length)] = Math.floor(next() * 256);
      try {
        for (const frame of read(bytes.subarray(0, Math.ceil(next() * 2 * bytes.length)))) frame.array("rows", "u32");
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
      }
    }
  });
});
