// The connection to the database is lost in commits that take effect. What clients asked for is done once, with its files.

import { afterEach, beforeEach, expect, it } from "vitest";
import { openPostgres } from "../../src/store/postgres/open.ts";
import type { Store } from "../../src/store/store.ts";
import { TokenStore } from "../../src/store/tokens.ts";
import { GroupLog } from "../../src/training/data/group-metrics.ts";
import { type PostgresProxy, startPostgresProxy } from "../postgres/postgres-proxy.ts";
import { usePostgres } from "../postgres/use-postgres.ts";
import { ended, newModel, submit, type TrainingBench, trainingBench } from "../support/training-service.ts";
import { violations } from "../training-invariants/violations.ts";

const postgres = usePostgres();

interface Server extends TrainingBench {
  proxy: PostgresProxy;
  store: Store;
}

let url: string;
let servers: Server[];
beforeEach(async () => {
  url = await postgres().createDatabase();
  servers = [];
});
afterEach(async () => {
  const [{ store, folder }] = servers as [Server];
  expect(await violations({ store, folder: `${folder}/training` })).toEqual([]);
  // the first one removes the folder
  for (const server of servers.reverse()) {
    server.proxy.commitFaults.length = 0;
    await server.close();
    await server.store.close();
    await server.proxy.faults.close();
  }
});

async function start(id: string, runsJobs: boolean): Promise<Server> {
  const proxy = await startPostgresProxy(url);
  const store = await openPostgres(proxy.url);
  const folder = servers[0]?.folder;
  const bench = await trainingBench({
    store,
    server: { id, runsJobs, alone: false },
    ...(folder === undefined ? {} : { folder }),
  });
  const server = { ...bench, proxy, store };
  servers.push(server);
  return server;
}

it("does what clients ask for although the answers to the commits are lost", async () => {
  // nothing else may commit first: a server that runs no jobs does nothing by itself
  const api = await start("api", false);
  await start("worker", true);
  const { models, runs, jobs } = api.service;
  const losing = async <R>(work: () => Promise<R>): Promise<R> => {
    const before = api.proxy.faults.cuts;
    api.proxy.commitFaults.push("after");
    const result = await work();
    expect(api.proxy.faults.cuts).toBe(before + 1);
    return result;
  };

  const tokens = new TokenStore(api.store);
  const { secret, record } = await losing(() => tokens.create({ name: "me", scopes: ["training"], lifetime: null }));
  expect(await tokens.check(secret)).toEqual({ ok: true, token: record });
  expect(await losing(() => tokens.revoke("me"))).toMatchObject([{ id: record.id }]);

  const model = await losing(() => newModel(api));
  const job = await losing(() => submit(api, model.id));
  expect((await ended(api, job)).at(-1)!.type).toBe("training_ended");
  expect(await losing(() => models.rollback(model.id, "me", 1))).toMatchObject({ step: 2 });

  const groups = new GroupLog();
  groups.addTrajectory({ reward: 1, metrics: {} });
  groups.addGroup({ exceptions: 0, metrics: {} });
  await losing(() => models.log(model.id, "me", "val", groups));
  expect((await models.step(model.id, "me", "latest")).metrics).toMatchObject({ rolled_back_to: 1, "val/reward": 1 });

  const names = { owner: "me", entity: "team", project: "demo", name: "fork", baseModel: null };
  const from = { modelId: model.id, step: null, owner: "me" };
  const fork = await losing(() => models.create({ ...names, returnExisting: false, from }));
  expect(await losing(() => models.deleteSteps(model.id, "me", [0]))).toMatchObject({ deletedCount: 1 });
  expect(await losing(() => models.delete(fork.id, "me"))).toEqual({ deletedCheckpoints: 1 });

  const request = {
    owner: "me",
    entity: "team",
    requestId: "r",
    name: null,
    baseModel: "tiny",
    loraRank: 2,
    seed: null,
  };
  const { run } = await runs.resolve({ ...request, spec: "{}", from: null });
  const operation = { requestId: "o", sequenceId: 0, requestHash: "h", draft: null };
  const saved = await losing(() => runs.submit(run, { ...operation, command: { kind: "save_state" } }));
  await expect.poll(async () => (await runs.operation(run.modelId, "me", saved.id)).status).toBe("COMPLETED");
  expect(await losing(() => runs.close(run.modelId, "me"))).toMatchObject({ status: "closed", nextSequenceId: 1 });
  expect(await jobs.list("me", null, null, null, 10)).toHaveLength(1);
});

it("trains although the answer to every commit of the worker is lost", async () => {
  const api = await start("api", false);
  const model = await newModel(api);
  const job = await submit(api, model.id);
  const { proxy, service } = await start("worker", true);
  proxy.commitFaults.push(...Array<"after">(1000).fill("after"));
  const types = (await ended(api, job)).map(({ type }) => type);
  expect(types.at(-1)).toBe("training_ended");
  expect(proxy.faults.cuts).toBeGreaterThan(types.length);
  expect(await service.jobs.owned(job.id, "me")).toMatchObject({ status: "COMPLETED", attempts: 1, toStep: 1 });
});

it("runs a job although the answer to its claim was lost, without waiting for the lease to expire", async () => {
  const api = await start("api", false);
  const model = await newModel(api);
  const worker = await start("worker", true);
  worker.proxy.lostUpdates.push("SET status = 'RUNNING'");
  const job = await submit(api, model.id);
  expect((await ended(api, job)).at(-1)!.type).toBe("training_ended");
  expect(worker.proxy.lostUpdates).toEqual([]);
  // an expired lease would have made it the second
  expect(await api.service.jobs.owned(job.id, "me")).toMatchObject({ status: "COMPLETED", attempts: 1 });
});
