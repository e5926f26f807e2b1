// Two adapters under the same names on both servers. vLLM loads them from the folder; Flywheel gives them to vLLM under
// names of its own, so that both exist beside each other.
import { join } from "node:path";
import { writeProbeAdapter } from "../../src/cli/doctor/adapters.check.ts";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import type { Exchange } from "./requests.ts";

export interface Server {
  url: string;
  token: string;
}

const RANK = 8;
const NAMES = ["compared-a", "compared-b"];

/** `folder` must be one that vLLM sees. */
export async function loadAdapters(servers: readonly Server[], model: string, folder: string): Promise<void> {
  const config = readModelConfig(model);
  for (const [i, name] of NAMES.entries()) {
    const path = join(folder, name);
    writeProbeAdapter(path, config, RANK, i + 1);
    for (const server of servers) await post(server, "load", { lora_name: name, lora_path: path });
  }
}

export async function unloadAdapters(servers: readonly Server[]): Promise<void> {
  for (const name of NAMES) for (const server of servers) await post(server, "unload", { lora_name: name });
}

/** The requests under each adapter, with the name of the adapter. */
export function underAdapters(exchanges: readonly Exchange[]): Exchange[] {
  return NAMES.flatMap((model) =>
    exchanges.map(({ name, path, body }) => ({ name: `${model} ${name}`, path, body: { ...body, model } })),
  );
}

async function post({ url, token }: Server, verb: "load" | "unload", body: Record<string, string>): Promise<void> {
  const reply = await fetch(`${url}/v1/${verb}_lora_adapter`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!reply.ok) throw new Error(`${url} does not ${verb} ${body.lora_name}: ${reply.status} ${await reply.text()}`);
}
