// A deployment of real processes that share a PostgreSQL database and a bucket, and no folder. The worker is killed while it
// uploads the step that it trained.

import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { FlywheelClient } from "../../src/client/client.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { tablesOn } from "../../src/store/tables/tables.ts";
import { usePostgres } from "../postgres/use-postgres.ts";
import { fresh, MODEL, run, serve } from "../support/cli-process.ts";
import { useS3 } from "./use-s3.ts";
import { wrongObjects } from "./wrong-objects.ts";

const HOUR_MS = 3_600_000;
const KEY = "test-key";
const postgres = usePostgres();
const s3 = useS3();

it("a step whose worker is killed in the middle of its upload is published once, by another worker", async () => {
  const database = await postgres().createDatabase();
  const storage = `s3://${s3().bucket}/prod`;
  const folders: string[] = [];
  const start = (role: string, until?: string) => {
    const data = mkdtempSync(join(tmpdir(), "flywheel-s3-"));
    folders.push(data);
    const model = [MODEL, "--served-model-name", "tiny", "--dtype", "float32", "--threads", "1"];
    const place = ["--data", data, "--storage", storage, "--port", "0", "--role", role, "--job-lease", "3"];
    return serve([...model, ...place, "--api-key", KEY], { FLYWHEEL_DATABASE: database }, until);
  };
  const api = await start("api");
  const worker = await start("worker", "listening on");
  const client = new FlywheelClient({ baseUrl: `${api.url}/v1`, apiKey: KEY });
  const model = await client.register({ project: "p", name: "agent", base_model: "tiny" });
  const groups = Array.from({ length: 4 }, (_, i) => ({
    trajectories: [0, 1].map((reward) => ({
      messages_and_choices: [
        { role: "user", content: `question ${i}` },
        {
          message: { role: "assistant", content: "" },
          logprobs: { content: [5, 6, 7 + reward].map((id) => ({ token: `token_id:${id}`, logprob: -1 })) },
        },
      ],
      reward,
    })),
  }));
  s3().fail({ kind: "hold", method: "PUT", match: /step-1-.*optimizer/ });
  const training = client.train(model.id, groups);
  await expect.poll(() => s3().held).toBe(1);
  worker.process.kill("SIGKILL");
  await worker.exit;
  s3().release();
  await start("worker", "listening on");
  expect(await training).toMatchObject({ status: "COMPLETED", step: 1 });

  const reply = await client.chat({
    model: model.inference_name,
    messages: [{ role: "user", content: "a" }],
    max_tokens: 2,
  });
  expect(reply.choices[0]).toMatchObject({ policy_version: 1 });
  const url = `${api.url}/v1/preview/models/${model.id}/checkpoints/1/adapter`;
  const adapter = await fetch(url, { headers: { authorization: `Bearer ${KEY}` } });
  expect([adapter.status, (await adapter.arrayBuffer()).byteLength > 10_000]).toEqual([200, true]);
  const copies = folders.map((data) => readdirSync(join(data, "storage-cache", "models", model.id)));
  expect(copies[0]!.filter((name) => name.startsWith("step-1-"))).toHaveLength(1);
  expect(copies[2]!.filter((name) => name.startsWith("step-1-"))).toHaveLength(1);

  // the bucket goes away: a submission is refused for now, and what is here is served
  s3().fail({ kind: "hang up" });
  const refused = await client.submit(model.id, groups).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(refused).toMatchObject({ status: 503 });
  expect(String(refused)).toContain("The storage cannot be reached. Try again later.");
  const again = await client.chat({
    model: model.inference_name,
    messages: [{ role: "user", content: "b" }],
    max_tokens: 2,
  });
  expect(again.choices[0]).toMatchObject({ policy_version: 1 });
  s3().release();

  const store = await openPostgres(database, null);
  // what the killed worker left is young; nothing else is out of place
  expect(await wrongObjects(tablesOn(store), s3(), "prod/", HOUR_MS)).toEqual([]);
  await store.close();
});

it("says in one line why it cannot start, and makes nothing", async () => {
  for (const [storage, message] of [
    ["s3://", /storage must look like s3:\/\/BUCKET\/PREFIX; it has no bucket/],
    ["s3://Wrong_Name/x", /bucket name that S3 does not allow, Wrong_Name/],
    ["s3://bucket/x?region=a", /without \? or #/],
    ["s3://not-there/x", /cannot use --storage s3:\/\/not-there\/x: there is no bucket not-there/],
  ] as const) {
    const data = fresh();
    const { code, out, err } = await run(["serve", MODEL, "--data", data, "--port", "0", "--storage", storage]);
    expect([code, out]).toEqual([1, expect.not.stringContaining("listening")]);
    const lines = err.split("\n").filter((line) => message.test(line));
    expect(lines, err).toHaveLength(1);
    expect(
      readdirSync(data).filter((name) => name !== "flywheel.db" && !/^(server\.lock|flywheel\.db-)/.test(name)),
    ).toEqual([]);
  }
  expect(s3().keys()).toEqual([]);
});
