// The connection to the database is lost in a commit that took effect. What clients asked for is done once, with its files.

import { expect, it } from "vitest";
import { openPostgres } from "../../src/store/open-postgres.ts";
import { ended, newModel, submit, trainingBench } from "../fakes/training-service.ts";
import { startPostgresProxy } from "../postgres/postgres-proxy.ts";
import { usePostgres } from "../postgres/use-postgres.ts";
import { violations } from "../training-invariants/violations.ts";

const postgres = usePostgres();

it("registers, trains, rolls back and forks although the answer to every commit is lost", async () => {
  const url = await postgres().createDatabase();
  const proxy = await startPostgresProxy(url);
  const store = await openPostgres(proxy.url);
  // nothing else may commit first: a server that runs no jobs does nothing by itself
  const server = { id: "api", runsJobs: false, alone: false };
  const api = await trainingBench({ store, server });
  const workerStore = await openPostgres(url);
  const worker = await trainingBench({
    store: workerStore,
    folder: api.folder,
    server: { id: "worker", runsJobs: true, alone: false },
  });
  const losing = async <R>(work: Promise<R>): Promise<R> => {
    const result = await work;
    expect(proxy.commitFaults).toEqual([]);
    return result;
  };
  const lose = () => proxy.commitFaults.push("after");

  lose();
  const model = await losing(newModel(api));
  lose();
  const job = await losing(submit(api, model.id));
  expect((await ended(api, job)).at(-1)!.type).toBe("training_ended");
  lose();
  expect(await losing(api.service.models.rollback(model.id, "me", 1))).toMatchObject({ step: 2 });
  lose();
  const names = { owner: "me", entity: "team", project: "demo", name: "fork", baseModel: null };
  const from = { modelId: model.id, step: null, owner: "me" };
  await losing(api.service.models.create({ ...names, returnExisting: false, from }));
  expect(proxy.faults.cuts).toBe(4);
  expect(await violations({ store, folder: `${api.folder}/training`, accepted: [job.id] })).toEqual([]);
  await api.close();
  await worker.close();
  await store.close();
  await workerStore.close();
  await proxy.faults.close();
});
