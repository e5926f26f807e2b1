// What clients see when operators' adapters and trained policies compete for the engine's slots. Steps come from rollbacks
// and from jobs with nothing to learn, which need no trainer.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, it, vi } from "vitest";
import { createTraining } from "../../../src/app/training.ts";
import { adapterFolder } from "../../support/adapter-folder.ts";
import { type Loose, says, startTestServer, type TestServer } from "../../support/test-server.ts";
import { LLAMA } from "../../support/training-service.ts";

let server: TestServer;
afterEach(() => server.close());

const adapters = mkdtempSync(join(tmpdir(), "flywheel-adapters-"));
const folder = (name: string) => adapterFolder(adapters, name);

async function start(maxLoras: number, modules: readonly string[] = []): Promise<void> {
  server = await startTestServer({
    maxLoras,
    runner: { before: () => delay(5) }, // slow enough that a long reply is still running when the test acts
    config: { loraModules: modules.map((name) => `${name}=${folder(name)}`) },
    model: { checkpoint: { folder: LLAMA, weightType: "float32" } },
    extensions: [createTraining],
  });
}

async function newPolicy(name: string): Promise<string> {
  const body = { project: "p", name, base_model: "fake", return_existing: true };
  return (await (await server.post("/v1/preview/models", body)).json()).id;
}
const rollback = (id: string) => server.post(`/v1/preview/models/${id}/rollback`, { step: 0 });
const chat = (model: string, more: object = {}) =>
  server.post("/v1/chat/completions", { model, messages: says("hi"), ...more });
const load = (name: string, more: object = {}) =>
  server.post("/v1/load_lora_adapter", { lora_name: name, lora_path: folder(name), ...more });
const unload = (name: string) => server.post("/v1/unload_lora_adapter", { lora_name: name });

async function expectNoSlot(response: Awaited<ReturnType<typeof chat>>, message: RegExp): Promise<void> {
  expect(response.status).toBe(503);
  expect(response.headers.get("retry-after")).toBe("1");
  const { error } = await response.json();
  expect(error).toMatchObject({ type: "ServiceUnavailableError", code: 503, message: expect.stringMatching(message) });
}

/** A chat that runs until the returned function is called. */
async function longChat(model: string): Promise<() => Promise<void>> {
  const response = await chat(model, { messages: [{ role: "user", content: "go on" }], stream: true });
  expect(response.status).toBe(200);
  const reader = response.body!.getReader();
  await reader.read();
  return () => reader.cancel();
}

it("finishes jobs and rollbacks while operators' adapters hold every slot", async () => {
  await start(2, ["a", "b"]);
  const id = await newPolicy("agent");
  const job = await (await server.post("/v1/preview/training-jobs", { model_id: id, trajectory_groups: [] })).json();
  const now = async (): Promise<Loose> => (await server.get(`/v1/preview/training-jobs/${job.id}`)).json();
  await expect.poll(async () => (await now()).status).not.toMatch(/PENDING|RUNNING/);
  expect(await now()).toMatchObject({ status: "COMPLETED", error_message: null, step: 1 });
  const rolled = await rollback(id);
  expect(rolled.status).toBe(200);
  expect((await rolled.json()).step).toBe(2);
  await expectNoSlot(await chat("agent"), /by adapters that the operator loaded/);
  expect((await chat("a")).status).toBe(200);
  expect((await unload("a")).status).toBe(200);
  expect((await (await chat("agent")).json()).model).toBe("agent:step2");
});

it("takes the slot of an idle policy for an operator's adapter", async () => {
  await start(1);
  await rollback(await newPolicy("agent"));
  expect((await chat("agent")).status).toBe(200);
  expect((await load("a")).status).toBe(200);
  expect((await chat("a")).status).toBe(200);
  await expectNoSlot(await chat("agent"), /by adapters that the operator loaded/);
});

it("answers 503 while a running request keeps a policy's slot", async () => {
  await start(1);
  await rollback(await newPolicy("agent"));
  await rollback(await newPolicy("other"));
  const stop = await longChat("agent");
  await expectNoSlot(await load("a"), /some by running requests/);
  await expectNoSlot(await chat("other"), /some by running requests/);
  expect((await chat("agent")).status).toBe(200);
  await stop();
  await expect.poll(async () => (await load("a")).status).toBe(200);
});

it("replaces an adapter in its only slot after the requests on it have ended", async () => {
  await start(1, ["a"]);
  const stop = await longChat("a");
  const replaced = server.post("/v1/load_lora_adapter", { lora_name: "a", lora_path: folder("b"), load_inplace: true });
  await delay(50);
  const waiting = chat("a");
  await stop();
  expect((await replaced).status).toBe(200);
  expect((await waiting).status).toBe(200);
  const cards: Loose = await (await server.get("/v1/models")).json();
  expect(cards.data.find(({ id }: Loose) => id === "a").root).toBe(folder("b"));
  const bad = await load("a", { lora_path: folder("missing"), load_inplace: true });
  expect(bad.status).toBe(500);
  expect((await chat("a")).status).toBe(200);
});

it("answers with the adapter that was asked for, even if it is replaced or unloaded before the request reaches the engine", async () => {
  await start(2, ["a"]);
  for (const change of [() => load("a", { lora_path: folder("b"), load_inplace: true }), () => unload("a")]) {
    vi.spyOn(server.service.turns, "next").mockImplementationOnce(async () => {
      expect((await change()).status).toBe(200);
    });
    expect((await chat("a")).status).toBe(200);
  }
  expect((await chat("a")).status).toBe(404);
});

it("refuses one adapter too many with 400 when waiting would not help", async () => {
  await start(1, ["a"]);
  const refused = await load("b");
  expect(refused.status).toBe(400);
  const { error } = await refused.json();
  expect(error).toMatchObject({ type: "InvalidUserInput", message: expect.stringContaining("all 1 adapter slots") });
  expect((await chat("a")).status).toBe(200);
});
