// A folder with a small adapter for test/fixtures/llama. The fakes look only at its name; a real engine can load it.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { writeProbeAdapter } from "../../src/cli/doctor/adapters.check.ts";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { LLAMA } from "./training-service.ts";

const RANK = 4;

/** `name`: of the new folder inside `parent`. The same name gives the same adapter. */
export function adapterFolder(parent: string, name: string): string {
  const path = join(parent, name);
  const seed = [...name].reduce((sum, char) => sum * 31 + char.charCodeAt(0), 1);
  if (!existsSync(path)) writeProbeAdapter(path, readModelConfig(LLAMA), RANK, seed);
  return path;
}
