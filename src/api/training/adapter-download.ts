// Sends a step's adapter as a tar archive of adapter_config.json and adapter_model.safetensors, which PEFT and vLLM can
// load. The step stays on disk until the download ends.

import { createReadStream, statSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import type { TrainingService } from "../../training/service.ts";
import { TrainingError } from "../../training/training-error.ts";
import { principalOf, readableBy } from "../http/auth.ts";
import { route } from "../route.ts";
import { stepFrom } from "./params.ts";

const ADAPTER_FILES = ["adapter_config.json", "adapter_model.safetensors"];
const BLOCK_BYTES = 512;

interface TarFile {
  name: string;
  path: string;
  bytes: number;
}

export function registerAdapterDownload(app: FastifyInstance, { models }: TrainingService): void {
  app.get<{ Params: { id: string; step: string } }>(
    "/v1/preview/models/:id/checkpoints/:step/adapter",
    route("training", "Download the adapter of a step as a tar archive", {
      ...{ reply: Type.Unknown(), type: "application/x-tar" },
    }),
    async (request, reply) => {
      const { id, step: wanted } = request.params;
      const { step, folder, release } = await models.openStep(id, readableBy(principalOf(request)), stepFrom(wanted));
      const files = filesIn(folder, step.step, release);
      const body = Readable.from(tarOf(files, Date.parse(step.createdAt) / 1000));
      body.once("close", release);
      return reply
        .type("application/x-tar")
        .header("content-length", tarBytes(files))
        .header("content-disposition", `attachment; filename="step-${step.step}.tar"`)
        .send(body);
    },
  );
}

function filesIn(folder: string, step: number, release: () => void): TarFile[] {
  try {
    return ADAPTER_FILES.map((name) => ({ name, path: join(folder, name), bytes: statSync(join(folder, name)).size }));
  } catch (cause) {
    release();
    throw new TrainingError("damaged_step", { step }, cause);
  }
}

/** `time` is in Unix seconds. */
async function* tarOf(files: readonly TarFile[], time: number): AsyncGenerator<Uint8Array> {
  for (const { name, path, bytes } of files) {
    yield tarHeader(name, bytes, time);
    yield* createReadStream(path);
    yield new Uint8Array(padded(bytes) - bytes);
  }
  yield new Uint8Array(2 * BLOCK_BYTES);
}

function tarBytes(files: readonly TarFile[]): number {
  return files.reduce((sum, { bytes }) => sum + BLOCK_BYTES + padded(bytes), 2 * BLOCK_BYTES);
}

function padded(bytes: number): number {
  return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
}

/** A POSIX ustar header. Numbers are octal. */
function tarHeader(name: string, bytes: number, time: number): Uint8Array {
  const header = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, digits: number) => Math.floor(value).toString(8).padStart(digits, "0");
  header.write(name, 0);
  header.write(octal(0o644, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(bytes, 11), 124);
  header.write(octal(time, 11), 136);
  header.write("        0", 148); // the checksum, summed as spaces; then the type of a plain file
  header.write("ustar\0" + "00", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)}\0 `, 148);
  return header;
}
