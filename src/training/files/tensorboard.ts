// Encodes TensorBoard event files: scalars over steps, as checksummed records that contain protocol-buffer events.

import { ProtoWriter } from "../../graph/protobuf.ts";

export interface ScalarPoint {
  step: number;
  /** Unix time in seconds. */
  time: number;
  values: Readonly<Record<string, number>>;
}

/** A complete event file. */
export function encodeEventFile(points: readonly ScalarPoint[]): Uint8Array {
  const start = points[0]?.time ?? 0;
  const events = [event(start, 0).string(3, "brain.Event:2")];
  for (const { step, time, values } of points) {
    const summary = new ProtoWriter();
    for (const [tag, value] of Object.entries(values)) {
      summary.message(1, new ProtoWriter().string(1, tag).float(2, value));
    }
    events.push(event(time, step).message(5, summary));
  }
  return concat(...events.map((each) => record(each.finish())));
}

function event(time: number, step: number): ProtoWriter {
  return new ProtoWriter().double(1, time).int(2, step);
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

function concat(...parts: readonly Uint8Array[]): Uint8Array {
  const result = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}
