// TensorBoard event files: scalars over steps, as a sequence of checksummed records with protocol-buffer events inside.
// Encodes whole files; where they are written is the caller's business.

export interface ScalarPoint {
  step: number;
  /** Unix time in seconds. */
  time: number;
  values: Readonly<Record<string, number>>;
}

/** A complete event file. */
export function encodeEventFile(points: readonly ScalarPoint[]): Uint8Array {
  const start = points[0]?.time ?? 0;
  const records = [event(start, 0, field(3, text("brain.Event:2")))];
  for (const { step, time, values } of points) {
    const scalars = Object.entries(values).map(([tag, value]) =>
      field(1, concat(field(1, text(tag)), float(2, value))),
    );
    records.push(event(time, step, field(5, concat(...scalars))));
  }
  return concat(...records.map(record));
}

function event(time: number, step: number, payload: Uint8Array): Uint8Array {
  return concat(double(1, time), varintField(2, step), payload);
}

/** Length, its checksum, the data, its checksum. */
function record(data: Uint8Array): Uint8Array {
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(data.length), true);
  return concat(length, maskedCrc(length), data, maskedCrc(data));
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  // the Castagnoli polynomial, reversed
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc;
});

export function crc32c(data: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of data) crc = CRC_TABLE[(crc ^ byte) & 0xff]! ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

function maskedCrc(data: Uint8Array): Uint8Array {
  const crc = crc32c(data);
  const masked = (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, masked, true);
  return bytes;
}

const WIRE_VARINT = 0;
const WIRE_64 = 1;
const WIRE_BYTES = 2;
const WIRE_32 = 5;

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 128) {
    bytes.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  return Uint8Array.of(...bytes, rest);
}

function key(number: number, wire: number): Uint8Array {
  return varint(number * 8 + wire);
}

function field(number: number, data: Uint8Array): Uint8Array {
  return concat(key(number, WIRE_BYTES), varint(data.length), data);
}

function varintField(number: number, value: number): Uint8Array {
  return concat(key(number, WIRE_VARINT), varint(value));
}

function double(number: number, value: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setFloat64(0, value, true);
  return concat(key(number, WIRE_64), bytes);
}

function float(number: number, value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setFloat32(0, value, true);
  return concat(key(number, WIRE_32), bytes);
}

function text(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

function concat(...parts: readonly Uint8Array[]): Uint8Array {
  const result = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}
