// A small WebAssembly encoder. An instruction is a function from operand code to code; a function is named locals plus
// a body. It has only the instructions that the sampling kernels use, and WebAssembly.Module validates the result. Code
// is bytes in evaluation order, so `f32x4.add(get(a), get(b))` reads like the expression it computes.

export type Code = readonly number[];
export type ValueType = "i32" | "f32" | "f64" | "v128";
/** Index of a parameter or local. */
export type Local = number;

export interface WasmFunction {
  name: string;
  params: readonly ValueType[];
  locals: readonly ValueType[];
  result: ValueType | null;
  body: Code;
}

const typeByte: Record<ValueType, number> = { i32: 0x7f, f32: 0x7d, f64: 0x7c, v128: 0x7b };

/** Unsigned LEB128. */
function u32(value: number): Code {
  const bytes: number[] = [];
  let rest = value >>> 0;
  while (rest > 0x7f) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  bytes.push(rest);
  return bytes;
}

/** Signed LEB128 of a 32-bit integer. */
function s32(value: number): Code {
  const bytes: number[] = [];
  let rest = value | 0;
  while (rest < -64 || rest > 63) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>= 7;
  }
  bytes.push(rest & 0x7f);
  return bytes;
}

const bytesOf = (values: Float32Array | Int32Array): Code => [...new Uint8Array(values.buffer)];
const simd = (opcode: number): Code => [0xfd, ...u32(opcode)];
const unary = (opcode: Code) => (a: Code) => [...a, ...opcode];
const binary = (opcode: Code) => (a: Code, b: Code) => [...a, ...b, ...opcode];
const lane = (opcode: number) => (a: Code, index: number) => [...a, ...simd(opcode), index];
// Memory operands: alignment hint 0 (none), then the constant offset.
const load = (opcode: Code) => (address: Code, offset: number) => [...address, ...opcode, 0, ...u32(offset)];
const store = (opcode: Code) => (address: Code, value: Code, offset: number) => [
  ...address,
  ...value,
  ...opcode,
  0,
  ...u32(offset),
];

export const get = (local: Local): Code => [0x20, ...u32(local)];
export const set = (local: Local, value: Code): Code => [...value, 0x21, ...u32(local)];

export const i32 = {
  const: (value: number): Code => [0x41, ...s32(value)],
  ctz: unary([0x68]),
  eq: binary([0x46]),
  geS: binary([0x4e]),
  add: binary([0x6a]),
  sub: binary([0x6b]),
  and: binary([0x71]),
  shl: binary([0x74]),
  load: load([0x28]),
  store: store([0x36]),
};
export const f32 = {
  const: (value: number): Code => [0x43, ...bytesOf(Float32Array.of(value))],
  ge: binary([0x60]),
  max: binary([0x97]),
  load: load([0x2a]),
  store: store([0x38]),
};
export const f64 = {
  zero: [0x44, 0, 0, 0, 0, 0, 0, 0, 0] as Code,
  add: binary([0xa0]),
  store: store([0x39]),
};
export const v128 = {
  zero: [...simd(12), ...new Array<number>(16).fill(0)] as Code,
  load: load(simd(0)),
  store: store(simd(11)),
  and: binary(simd(78)),
  or: binary(simd(80)),
  xor: binary(simd(81)),
  /** Bits of `a` where `mask` is set, else of `b`. */
  select: (a: Code, b: Code, mask: Code): Code => [...a, ...b, ...mask, ...simd(82)],
  anyTrue: unary(simd(83)),
};
export const i32x4 = {
  const: (value: number): Code => i32x4.of(value, value, value, value),
  of: (...lanes: [number, number, number, number]): Code => [...simd(12), ...bytesOf(Int32Array.of(...lanes))],
  splat: unary(simd(17)),
  lane: lane(27),
  eq: binary(simd(55)),
  leU: binary(simd(62)),
  bitmask: unary(simd(164)),
  shl: binary(simd(171)),
  shrS: binary(simd(172)),
  shrU: binary(simd(173)),
  add: binary(simd(174)),
  sub: binary(simd(177)),
};
export const f32x4 = {
  const: (value: number): Code => [...simd(12), ...bytesOf(Float32Array.of(value, value, value, value))],
  splat: unary(simd(19)),
  lane: lane(31),
  ne: binary(simd(66)),
  ge: binary(simd(70)),
  add: binary(simd(228)),
  sub: binary(simd(229)),
  mul: binary(simd(230)),
  /** a < b ? b : a, lane by lane. Ignores a NaN in `b`. */
  pmax: binary(simd(235)),
};
export const f64x2 = {
  lane: lane(33),
  add: binary(simd(240)),
  /** Lanes 0 and 1 of four floats as doubles. */
  fromLowF32: unary(simd(95)),
  /** Lanes 2 and 3 of four floats as doubles. */
  fromHighF32: (a: Code): Code =>
    unary(simd(95))([...a, ...a, ...simd(13), 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15]),
};

export const ifThen = (condition: Code, body: Code): Code => [...condition, 0x04, 0x40, ...body, 0x0b];
/** Runs the body, then again as long as the condition is not zero. */
export const repeatWhile = (body: Code, condition: Code): Code => [0x03, 0x40, ...body, ...condition, 0x0d, 0, 0x0b];
export const returnValue = (value: Code): Code => [...value, 0x0f];

/** A function with named parameters and locals. The body gets their indices. */
export function defineFunction<Name extends string>(definition: {
  name: string;
  params: Partial<Record<Name, ValueType>>;
  locals: Partial<Record<Name, ValueType>>;
  result: ValueType | null;
  body: (local: Record<Name, Local>) => Code;
}): WasmFunction {
  const params = Object.entries(definition.params) as [Name, ValueType][];
  const locals = Object.entries(definition.locals) as [Name, ValueType][];
  const indices = Object.fromEntries([...params, ...locals].map(([name], index) => [name, index]));
  return {
    name: definition.name,
    params: params.map(([, type]) => type),
    locals: locals.map(([, type]) => type),
    result: definition.result,
    body: definition.body(indices as Record<Name, Local>),
  };
}

/** A module that imports its memory as "host"."memory" and exports every function. */
export function encodeModule(functions: readonly WasmFunction[]): Uint8Array<ArrayBuffer> {
  const text = (value: string): Code => sized([...new TextEncoder().encode(value)]);
  const sized = (code: Code): Code => [...u32(code.length), ...code];
  const vector = (items: readonly Code[]): Code => [...u32(items.length), ...items.flat()];
  const section = (id: number, code: Code): Code => [id, ...sized(code)];
  const types = functions.map((f) => [
    0x60,
    ...vector(f.params.map((type) => [typeByte[type]])),
    ...vector(f.result === null ? [] : [[typeByte[f.result]]]),
  ]);
  const bodies = functions.map((f) => sized([...vector(f.locals.map((type) => [1, typeByte[type]])), ...f.body, 0x0b]));
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...section(1, vector(types)),
    ...section(2, vector([[...text("host"), ...text("memory"), 0x02, 0x00, 0x01]])),
    ...section(3, vector(functions.map((_, index) => u32(index)))),
    ...section(7, vector(functions.map((f, index) => [...text(f.name), 0x00, ...u32(index)]))),
    ...section(10, vector(bodies)),
  ]);
}
