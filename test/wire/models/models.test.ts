import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { adapterFolder } from "../../support/adapter-folder.ts";
import { sharedServer } from "../../support/shared-server.ts";
import type { LooseResponse } from "../../support/test-server.ts";

const server = sharedServer();
const json = async (response: Promise<LooseResponse>) => (await response).json();

describe("models and adapters", () => {
  const folder = (name: string) => adapterFolder(mkdtempSync(join(tmpdir(), "flywheel-adapter-")), name);

  it("lists cards", async () => {
    const list = await json(server.get("/v1/models"));
    expect(list.object).toBe("list");
    expect(list.data.map((m: { id: string }) => m.id)).toEqual(["fake", "fake-alias"]);
    expect(Object.keys(list.data[0])).toEqual([
      "id",
      "object",
      "created",
      "owned_by",
      "root",
      "parent",
      "max_model_len",
      "permission",
    ]);
    expect(list.data[0]).toMatchObject({ object: "model", root: "fakes/fake", parent: null, max_model_len: 2048 });
    expect(await json(server.get("/v1/models/fake"))).toEqual(list.data[0]);
    expect((await server.get("/v1/models/org/name")).status).toBe(404);
  });

  it("loads, serves, replaces and unloads an adapter", async () => {
    const path = folder("one");
    const load = (body: object) => server.post("/v1/load_lora_adapter", body);
    const loaded = await load({ lora_name: "tuned/a", lora_path: path });
    expect(loaded.status).toBe(200);
    expect(await loaded.text()).toContain("tuned/a");
    expect(await json(server.get("/v1/models/tuned/a"))).toMatchObject({
      parent: "fake",
      root: path,
      max_model_len: 2048,
    });
    const body = { messages: [{ role: "user", content: "go on" }], temperature: 0, max_tokens: 8 };
    const base = await server.chat(body);
    const tuned = await server.chat({ ...body, model: "tuned/a" });
    expect(tuned.model).toBe("tuned/a");
    expect(tuned.choices[0].message.content).not.toBe(base.choices[0].message.content);

    const again = await load({ lora_name: "tuned/a", lora_path: path });
    expect(again.status).toBe(400);
    expect((await again.json()).error.type).toBe("InvalidUserInput");
    expect((await load({ lora_name: "tuned/a", lora_path: folder("two"), load_inplace: true })).status).toBe(200);
    const scrape = await (await server.get("/metrics")).text();
    expect(scrape).not.toContain('model_name="tuned');
    expect(scrape).toMatch(/vllm:lora_requests_info\{max_lora="2",running_lora_adapters="tuned\/a"\} 1/);

    expect((await server.post("/v1/unload_lora_adapter", { lora_name: "tuned/a" })).status).toBe(200);
    expect((await server.post("/v1/chat/completions", { ...body, model: "tuned/a" })).status).toBe(404);
    expect((await server.post("/v1/unload_lora_adapter", { lora_name: "tuned/a" })).status).toBe(404);
  });

  it("refuses incomplete, taken and broken ones", async () => {
    const load = async (body: object) => (await server.post("/v1/load_lora_adapter", body)).status;
    expect(await load({})).toBe(400);
    expect(await load({ lora_name: "x", lora_path: "" })).toBe(400);
    expect(await load({ lora_name: "fake", lora_path: folder("x") })).toBe(400);
    expect(await load({ lora_name: "x", lora_path: "/nowhere" })).toBe(404);
    expect(await load({ lora_name: "x", lora_path: folder("large") })).toBe(400);
    // "corrupt adapter 500": the files are the server's.
    expect(await load({ lora_name: "x", lora_path: folder("missing") })).toBe(500);
    expect((await server.post("/v1/unload_lora_adapter", {})).status).toBe(400);
  });

  it("leaves nothing behind when two clients replace one name at once", async () => {
    const paths = [folder("a"), folder("b"), folder("c")];
    const replies = await Promise.all(
      paths.map((lora_path) =>
        server.post("/v1/load_lora_adapter", { lora_name: "raced", lora_path, load_inplace: true }),
      ),
    );
    expect(replies.map((r) => r.status)).toEqual([200, 200, 200]);
    expect((await server.post("/v1/unload_lora_adapter", { lora_name: "raced" })).status).toBe(200);
    // Both slots are free again.
    for (const name of ["p", "q"]) {
      expect((await server.post("/v1/load_lora_adapter", { lora_name: name, lora_path: folder(name) })).status).toBe(
        200,
      );
      expect((await server.post("/v1/unload_lora_adapter", { lora_name: name })).status).toBe(200);
    }
  });
});
