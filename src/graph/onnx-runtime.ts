// Loads ONNX Runtime. The packed program carries it for the platforms it runs on (docs/reference/installation.md);
// a checkout has it in node_modules.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const carried = fileURLToPath(new URL("../../runtime/onnxruntime-node/dist/index.js", import.meta.url));
const runtime = createRequire(import.meta.url)(
  existsSync(carried) ? carried : "onnxruntime-node",
) as typeof import("onnxruntime-node");

export const { InferenceSession, Tensor } = runtime;
export const runtimeVersions = runtime.env.versions;
export type InferenceSession = import("onnxruntime-node").InferenceSession;
export type Tensor = import("onnxruntime-node").Tensor;
