// Writes the same weights in each engine's format, on demand, into a temporary folder that is removed at the end. Uses
// random weights if the user names no checkpoint.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Checkpoint, openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import type { Precision } from "../contenders/contender.ts";
import type { EngineName } from "../plan.ts";
import type { GgmlType } from "./ggml-blocks.ts";
import { spelledTokens } from "./gguf-metadata.ts";
import { writeGgufModel } from "./gguf-model.ts";
import { writeOnnxModel } from "./onnx-export.ts";
import type { ExportPrecision } from "./onnx-export-linear.ts";
import { type Size, shapes, writeRandomCheckpoint } from "./random-checkpoint.ts";

const GGUF_TYPE: Readonly<Record<Precision, GgmlType>> = { f32: "f32", f16: "f16", int8: "q8_0", int4: "q4_0" };

export class ModelFiles {
  readonly checkpoint: Checkpoint;
  readonly #folder: string;

  /** `model` is a checkpoint folder, or null for random weights of this size. */
  constructor(model: string | null, size: Size, positions?: number) {
    this.#folder = mkdtempSync(join(tmpdir(), "flywheel-bench-"));
    const random = join(this.#folder, "checkpoint");
    if (model === null) writeRandomCheckpoint(random, shapes[size], positions);
    this.checkpoint = openCheckpoint(model === null ? random : resolve(model));
  }

  /** Throws if the format cannot hold this model. */
  pathFor(engine: EngineName, precision: Precision): string {
    switch (engine) {
      case "flywheel":
        return this.checkpoint.path;
      case "llama.cpp":
      case "llama-batched-bench": {
        const path = join(this.#folder, `${precision}.gguf`);
        if (!existsSync(path)) writeGgufModel(this.checkpoint, path, GGUF_TYPE[precision]);
        return path;
      }
      case "ollama": {
        const path = join(this.#folder, `${precision}-texts.gguf`);
        if (!existsSync(path))
          writeGgufModel(this.checkpoint, path, GGUF_TYPE[precision], spelledTokens(this.checkpoint.config));
        return path;
      }
      case "transformers.js": {
        const path = join(this.#folder, `onnx-${precision}`);
        if (!existsSync(path)) writeOnnxModel(this.checkpoint, path, precision as ExportPrecision);
        return path;
      }
      default:
        return engine satisfies never;
    }
  }

  remove(): void {
    this.checkpoint.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
