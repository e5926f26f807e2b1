// Emits a traced graph as an ONNX model (protobuf bytes). Weights stay outside the protobuf as external data, so models
// over 2 GB work and no second copy is made. Small constants are inlined. Field numbers are those of onnx.proto; only
// the fields that the runtime needs are written.

import {
  type Attribute,
  type DType,
  FLYWHEEL,
  Graph,
  type Initializer,
  MICROSOFT,
  type Node,
  type TypedData,
  type Value,
} from "./graph.ts";
import { ProtoWriter } from "./protobuf.ts";

export interface OnnxModel {
  /** The protobuf. */
  bytes: Uint8Array;
  /** Weights that the protobuf refers to: location name -> bytes. */
  external: { path: string; data: Uint8Array }[];
}

const OPSET = 21;
const IR_VERSION = 10;
const ELEMENT_TYPE: Record<DType, number> = {
  ...{ float32: 1, uint8: 2, int8: 3, int32: 6, int64: 7, bool: 9, float16: 10 },
};
/** Constants up to this size travel inside the protobuf. */
const INLINE_BYTES = 4096;

/** Weights that the native module holds in its own memory: the handle of each node that multiplies with them. */
export type PackedWeights = ReadonlyMap<Node, number>;

/** Nodes in `packed` are written with their handle in place of weights. */
export function emitOnnx(graph: Graph, packed: PackedWeights = new Map()): OnnxModel {
  const external: OnnxModel["external"] = [];
  const model = new ProtoWriter()
    .int(1, IR_VERSION)
    .string(2, "flywheel")
    .message(7, graphProto(graph, "model", { external, packed, held: weightsOf(packed) }))
    .message(8, new ProtoWriter().string(1, "").int(2, OPSET))
    .message(8, new ProtoWriter().string(1, MICROSOFT).int(2, 1))
    .message(8, new ProtoWriter().string(1, FLYWHEEL).int(2, 1));
  return { bytes: model.finish(), external };
}

interface Emission {
  external: OnnxModel["external"];
  packed: PackedWeights;
  /** Initializers that the native module holds. */
  held: ReadonlySet<Value | null>;
}

/** Inputs of a packed node that the native module holds: weights, scales and bias. The others are inputs of the runtime's node. */
const isHeld = (place: number) => place >= 1 && place <= 3;

function weightsOf(packed: PackedWeights): Set<Value | null> {
  return new Set([...packed.keys()].flatMap(({ inputs }) => inputs.filter((_, place) => isHeld(place))));
}

function graphProto(graph: Graph, name: string, to: Emission): ProtoWriter {
  const proto = new ProtoWriter();
  for (const node of graph.nodes) proto.message(1, nodeProto(node, to));
  proto.string(2, name);
  for (const initializer of graph.initializers) {
    if (!to.held.has(initializer.value)) proto.message(5, tensorProto(initializer, to));
  }
  for (const value of graph.inputs) proto.message(11, valueInfo(value));
  for (const value of graph.outputs) proto.message(12, valueInfo(value));
  return proto;
}

function nodeProto(node: Node, to: Emission): ProtoWriter {
  const proto = new ProtoWriter();
  const handle = to.packed.get(node);
  const inputs = handle === undefined ? node.inputs : node.inputs.filter((_, place) => !isHeld(place));
  const attributes = handle === undefined ? node.attributes : { ...node.attributes, weights: handle };
  for (const input of inputs) proto.string(1, input?.name ?? "");
  for (const output of node.outputs) proto.string(2, output.name);
  proto.string(4, node.op);
  for (const [name, value] of Object.entries(attributes)) proto.message(5, attributeProto(name, value, to));
  if (node.domain !== "") proto.string(7, node.domain);
  return proto;
}

/** Plain numbers are ints. Floats are written as { float }. */
function attributeProto(name: string, value: Attribute, to: Emission): ProtoWriter {
  const proto = new ProtoWriter().string(1, name);
  if (typeof value === "number") return proto.int(3, value).int(20, 2);
  if (typeof value === "string") return proto.string(4, value).int(20, 3);
  if (value instanceof Graph) return proto.message(6, graphProto(value, name, to)).int(20, 5);
  if ("float" in value) return proto.float(2, value.float).int(20, 1);
  for (const item of value) proto.int(8, item);
  return proto.int(20, 7);
}

function tensorProto({ value, data }: Initializer, to: Emission): ProtoWriter {
  const proto = new ProtoWriter();
  for (const dim of value.shape) proto.int(1, dim as number);
  proto.int(2, ELEMENT_TYPE[value.dtype]).string(8, value.name);
  const bytes = bytesOf(data);
  if (bytes.byteLength <= INLINE_BYTES) return proto.bytes(9, bytes);
  to.external.push({ path: value.name, data: bytes });
  for (const [key, text] of [
    ["location", value.name],
    ["offset", "0"],
    ["length", String(bytes.byteLength)],
  ] as const) {
    proto.message(13, new ProtoWriter().string(1, key).string(2, text));
  }
  return proto.int(14, 1);
}

function valueInfo(value: Value): ProtoWriter {
  const shape = new ProtoWriter();
  for (const dim of value.shape) {
    const proto = new ProtoWriter();
    shape.message(1, typeof dim === "number" ? proto.int(1, dim) : proto.string(2, dim));
  }
  const tensor = new ProtoWriter().int(1, ELEMENT_TYPE[value.dtype]).message(2, shape);
  return new ProtoWriter().string(1, value.name).message(2, new ProtoWriter().message(1, tensor));
}

function bytesOf(data: TypedData): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
