// What a checkpoint needs of a file of weights, whatever its format.

export interface StoredTensor {
  readonly name: string;
  /** As the format calls it: "BF16", "Q8_0". */
  readonly dtype: string;
  /** Row-major. */
  readonly shape: readonly number[];
  /** The product of the shape. */
  readonly elements: number;
}

export interface WeightFile {
  readonly path: string;
  /** Changes with the file. */
  readonly identity: string;
  /** Throws if the file has no tensor of that name. */
  entry(name: string): StoredTensor;
  /** All values as float32. */
  read(name: string): Float32Array;
  /** Fills `values` with the tensor's values from number `first` on. Throws unless all are finite. */
  readPart(name: string, first: number, values: Float32Array): void;
  /** A copy of the bytes as they are in the file. */
  readBytes(name: string): Uint8Array;
}

export interface WeightFiles {
  /** The file that holds each tensor. */
  byTensor: ReadonlyMap<string, WeightFile>;
  close(): void;
}
