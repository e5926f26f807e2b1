// Tags and notes on models and jobs, over HTTP.

import { beforeAll, describe, expect, it } from "vitest";
import { shared } from "../../support/shared-server.ts";
import { finishedJob, jobBody, newModel } from "./training-requests.ts";
import { startTrainingServer } from "./training-server.ts";

const server = shared(() => startTrainingServer());
const NOTES = "/v1/preview/notes";
let model: string;
let job: string;
beforeAll(async () => {
  model = (await newModel(server)).id;
  job = (await server.call("POST", "/v1/preview/training-jobs", jobBody(model, []))).json.id;
  await finishedJob(server, job);
});

const put = (path: string, body: unknown, as: "ann" | "bob" | "root" | "guest" = "ann") =>
  server.call("PUT", `/v1/preview/${path}/note`, body, { as });
const list = async (query = "", as: "ann" | "bob" | "root" = "ann") =>
  (await server.call("GET", NOTES + query, undefined, { as })).json;

describe("notes", () => {
  it("are kept with models and jobs, replaced as a whole, and gone when they are empty", async () => {
    const first = await put(`models/${model}`, { tags: ["good", "sweep-3", "good"], text: 'a "note"\n<b>two</b> é' });
    expect(first.status).toBe(200);
    expect(first.json).toEqual({
      ...{ id: model, model_id: model, tags: ["good", "sweep-3"], text: 'a "note"\n<b>two</b> é' },
      updated_at: expect.stringMatching(/^20\d\d-.*Z$/),
    });
    await put(`training-jobs/${job}`, { text: "of a job" });
    const all = await list();
    expect(all.data.map(({ id }: { id: string }) => id).sort()).toEqual([model, job].sort());
    const [one, two] = [await list("?limit=1"), await list(`?limit=1&after=${[model, job].sort()[0]}`)];
    expect([one.has_more, two.has_more]).toEqual([true, false]);
    expect([...one.data, ...two.data]).toEqual(all.data);
    await put(`models/${model}`, { tags: ["bad"] });
    expect((await list()).data.find(({ id }: { id: string }) => id === model)).toMatchObject({
      tags: ["bad"],
      text: "",
    });
    await put(`models/${model}`, {});
    await put(`training-jobs/${job}`, { tags: [], text: "" });
    expect((await list()).data).toEqual([]);
  });

  it("belong to a workspace: others neither see nor write them, an admin reads", async () => {
    await put(`models/${model}`, { text: "ours" });
    expect((await list("", "bob")).data).toEqual([]);
    expect((await list("", "root")).data).toHaveLength(1);
    for (const path of [`models/${model}`, `training-jobs/${job}`]) {
      expect((await put(path, { text: "x" }, "bob")).status).toBe(404);
      expect((await put(path, { text: "x" }, "root")).status).toBe(403);
      expect((await put(path, { text: "x" }, "guest")).status).toBe(403);
    }
    expect((await list()).data[0].text).toBe("ours");
  });

  it("are bounded", async () => {
    for (const body of [
      { text: "x".repeat(2001) },
      { text: "a\0b" },
      { tags: ["two words"] },
      { tags: [""] },
      { tags: ["x".repeat(41)] },
      { tags: Array.from({ length: 11 }, (_, i) => `t${i}`) },
      { tags: "good" },
      { text: 7 },
    ]) {
      expect([body, (await put(`models/${model}`, body)).status]).toEqual([body, 422]);
    }
    const { store } = server.bench;
    await put(`models/${model}`, { text: "kept" });
    for (let i = 0; i < 1999; i++) {
      await store.run(
        "INSERT INTO notes (subject, model_id, owner, tags, text, updated_at) VALUES (?1, ?2, '1', '[]', 'x', '')",
        ...[`filler-${i}`, model],
      );
    }
    const refused = await put(`training-jobs/${job}`, { text: "one too many" });
    expect([refused.status, refused.json.error.message]).toEqual([429, expect.stringContaining("2000 notes")]);
    expect((await put(`models/${model}`, { text: "changed" })).status).toBe(200);
    await store.run("DELETE FROM notes WHERE subject LIKE 'filler-%'");
  });

  it("go with their model", async () => {
    const { id } = await newModel(server);
    const { json } = await server.call("POST", "/v1/preview/training-jobs", jobBody(id, []));
    await finishedJob(server, json.id);
    await put(`models/${id}`, { text: "a" });
    await put(`training-jobs/${json.id}`, { text: "b" });
    const of = async () => (await list()).data.filter((note: { model_id: string }) => note.model_id === id).length;
    expect(await of()).toBe(2);
    await server.call("DELETE", `/v1/preview/models/${id}`);
    expect(await of()).toBe(0);
    expect((await put(`models/${id}`, { text: "late" })).status).toBe(404);
  });
});
