// Writes the few protobuf wire types that ONNX and TensorBoard files need. The caller chooses the order of fields. A
// nested message is written first and its bytes are copied, so large byte fields belong near the top.

export class ProtoWriter {
  // Most messages are small, and there are thousands of them.
  #buffer = new Uint8Array(64);
  #length = 0;

  /** Field of wire type 0. Negative numbers take ten bytes, as protobuf's int64 does. */
  int(field: number, value: number | bigint): this {
    this.#tag(field, 0);
    this.#varint(typeof value === "bigint" ? BigInt.asUintN(64, value) : value);
    return this;
  }

  /** Field of wire type 5. */
  float(field: number, value: number): this {
    this.#tag(field, 5);
    this.#reserve(4);
    new DataView(this.#buffer.buffer).setFloat32(this.#length, value, true);
    this.#length += 4;
    return this;
  }

  /** Field of wire type 1. */
  double(field: number, value: number): this {
    this.#tag(field, 1);
    this.#reserve(8);
    new DataView(this.#buffer.buffer).setFloat64(this.#length, value, true);
    this.#length += 8;
    return this;
  }

  bytes(field: number, value: Uint8Array): this {
    this.#tag(field, 2);
    this.#varint(value.byteLength);
    this.#reserve(value.byteLength);
    this.#buffer.set(value, this.#length);
    this.#length += value.byteLength;
    return this;
  }

  string(field: number, value: string): this {
    return this.bytes(field, new TextEncoder().encode(value));
  }

  message(field: number, value: ProtoWriter): this {
    return this.bytes(field, value.finish());
  }

  finish(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  #tag(field: number, wireType: number): void {
    this.#varint(field * 8 + wireType);
  }

  #varint(value: number | bigint): void {
    this.#reserve(10);
    if (typeof value === "number" && value >= 0) {
      let rest = value;
      while (rest > 127) {
        this.#buffer[this.#length++] = (rest % 128) | 128;
        rest = Math.floor(rest / 128);
      }
      this.#buffer[this.#length++] = rest;
      return;
    }
    let rest = BigInt.asUintN(64, BigInt(value));
    while (rest > 127n) {
      this.#buffer[this.#length++] = Number(rest & 127n) | 128;
      rest >>= 7n;
    }
    this.#buffer[this.#length++] = Number(rest);
  }

  #reserve(extra: number): void {
    if (this.#length + extra <= this.#buffer.length) return;
    const grown = new Uint8Array(Math.max(this.#buffer.length * 2, this.#length + extra));
    grown.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = grown;
  }
}
