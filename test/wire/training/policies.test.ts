// Policies beside the served model: which names they may have, and what requests under those names get.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createTraining } from "../../../src/app/training.ts";
import { says, startTestServer, type TestServer } from "../../support/test-server.ts";
import { LLAMA } from "../../support/training-service.ts";

const data = mkdtempSync(join(tmpdir(), "flywheel-policies-"));
const start = (names?: string[], loraModules: string[] = []) =>
  startTestServer({
    config: { data, loraRank: 2, loraModules },
    model: { checkpoint: { folder: LLAMA, weightType: "float32" }, ...(names ? { names } : {}) },
    extensions: [createTraining],
  });

let server: TestServer;
beforeAll(async () => {
  server = await start();
});
afterAll(async () => {
  await server.close();
  rmSync(data, { recursive: true, force: true });
});

const register = (name: string) =>
  server.post("/v1/preview/models", { project: "p", name, base_model: "fake", return_existing: true });

it("does not register a policy under a name that something else answers to", async () => {
  const folder = mkdtempSync(join(data, "adapter"));
  writeFileSync(join(folder, "adapter_config.json"), "{}");
  expect((await server.post("/v1/load_lora_adapter", { lora_name: "tuned", lora_path: folder })).status).toBe(200);
  for (const name of ["fake", "fake-alias", "tuned"]) {
    const answer = await register(name);
    const body = await answer.json();
    expect(answer.status, name).toBe(409);
    expect(body.error.param, name).toBe("name");
    expect(body.detail).toContain(name);
  }
  expect((await register("agent")).status).toBe(200);
  expect((await register("agent")).status).toBe(200);
});

it("does not load an adapter under a name that a policy answers to", async () => {
  const folder = mkdtempSync(join(data, "adapter"));
  writeFileSync(join(folder, "adapter_config.json"), "{}");
  expect((await register("mine")).status).toBe(200);
  for (const name of ["mine", "mine@0", "mine:step7", "fake"]) {
    for (const load_inplace of [false, true]) {
      const answer = await server.post("/v1/load_lora_adapter", { lora_name: name, lora_path: folder, load_inplace });
      const { error } = await answer.json();
      expect(answer.status, name).toBe(400);
      expect(error.type, name).toBe("InvalidUserInput");
      expect(error.param, name).toBe("lora_name");
    }
  }
  expect((await server.chat({ model: "mine", messages: says("x") })).model).toBe("mine:step0");
});

it("says so when the base model of a policy is not served any more", async () => {
  expect((await register("orphan")).status).toBe(200);
  const names = async () => (await (await server.get("/v1/models")).json()).data.map(({ id }: { id: string }) => id);
  expect(await names()).toContain("orphan");
  await server.close();
  server = await start(["renamed"]);
  const answer = await server.post("/v1/chat/completions", { model: "orphan", messages: says("x"), max_tokens: 2 });
  expect(answer.status).toBe(404);
  const { error } = await answer.json();
  expect(error).toMatchObject({ type: "NotFoundError", param: "model" });
  expect(error.message).toMatch(/base model fake of orphan is not served any more/);
  expect(await names()).not.toContain("orphan");
  expect((await server.get("/v1/models/orphan")).status).toBe(404);
  await server.close();
  server = await start();
  expect(await names()).toContain("orphan");
});

it("does not start with a served model or an adapter that would hide a policy", async () => {
  expect((await register("mine")).status).toBe(200);
  await server.close();
  writeFileSync(join(data, "adapter_config.json"), "{}");
  for (const name of ["mine", "mine@0"]) {
    await expect(start(["fake", name])).rejects.toThrow(
      `${name} is the name of a trained policy, which the served model would hide: give another --served-model-name`,
    );
    await expect(start(["fake"], [`${name}=${data}`])).rejects.toThrow(/--lora-modules mine.* or of a policy/);
  }
  server = await start();
});

it("describes a policy under every name that chat answers to, and lists each under one of its own", async () => {
  const inProject = (project: string) =>
    server.post("/v1/preview/models", { project, name: "twin", base_model: "fake", return_existing: true });
  const [older, newer] = [await (await inProject("one")).json(), await (await inProject("two")).json()];
  const { data } = await (await server.get("/v1/models")).json();
  const twins = data.filter(({ root }: { root: string }) => root.endsWith("/twin"));
  expect(twins.map(({ id, root }: { id: string; root: string }) => [id, root])).toEqual([
    [older.inference_name, older.inference_name],
    ["twin", newer.inference_name],
  ]);
  const cases = [
    ["twin", newer],
    ["twin@0", newer],
    ["twin:step0", newer],
    [newer.inference_name, newer],
    [older.inference_name, older],
    [`${older.inference_name}:step0`, older],
  ];
  for (const [name, policy] of cases) {
    expect((await server.chat({ model: name, messages: says("x"), max_tokens: 1 })).model).toMatch(/:step0$/);
    const answer = await server.get(`/v1/models/${encodeURIComponent(name)}`);
    expect(await answer.json()).toMatchObject({ id: name, root: policy.inference_name, parent: "fake" });
  }
  for (const name of ["twin@1", "twins", `${older.inference_name}:step1`]) {
    expect((await server.get(`/v1/models/${encodeURIComponent(name)}`)).status).toBe(404);
  }
});

it("gives top_logprobs under a policy's name without logprobs, which are on there", async () => {
  expect((await register("agent")).status).toBe(200);
  const body = { messages: says("x"), max_tokens: 2, top_logprobs: 3 };
  for (const logprobs of [undefined, null, true]) {
    const reply = await server.chat({ ...body, model: "agent", logprobs });
    for (const entry of reply.choices[0].logprobs.content) expect(entry.top_logprobs).toHaveLength(3);
  }
  for (const refused of [{ model: "agent", logprobs: false }, { model: "fake" }, { logprobs: false }]) {
    const answer = await server.post("/v1/chat/completions", { ...body, ...refused });
    expect(answer.status).toBe(400);
    expect((await answer.json()).error.param).toBe("top_logprobs");
  }
});
