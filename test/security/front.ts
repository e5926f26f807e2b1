// A server in this process in front of a fake vLLM server, as with --engine-url.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../src/app/serve.ts";
import { createTraining } from "../../src/app/training.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { OptionName } from "../../src/config/options.ts";
import { MODEL } from "../support/cli-process.ts";
import { FakeVllm } from "../support/fake-vllm.ts";

const FRONT_KEY = "front-key";

export interface Front {
  replica: FakeVllm;
  server: StartedServer;
}

const opened: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

/** Closed after the test. */
export async function startFront(flags: Partial<Record<OptionName, unknown>> = {}): Promise<Front> {
  const replica = await FakeVllm.start();
  opened.push(replica);
  const data = mkdtempSync(join(tmpdir(), "flywheel-front-"));
  const common = { model: MODEL, port: 0, data, apiKey: [FRONT_KEY], engineUrl: [replica.url], logLevel: "warn" };
  const server = await startServer(loadConfig({ env: {}, flags: { ...common, ...flags } }), loadModel, [
    createTraining,
  ]);
  opened.push(server);
  return { replica, server };
}

/** `headers`: may have another token. A reply that has no end is read for a second. */
export async function send(
  { url }: StartedServer,
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  const reply = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${FRONT_KEY}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  let text = "";
  const reader = reply.body?.getReader();
  const end = setTimeout(() => void reader?.cancel(), 1000);
  for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
    text += Buffer.from(part.value).toString("latin1");
  }
  clearTimeout(end);
  return { status: reply.status, text };
}
