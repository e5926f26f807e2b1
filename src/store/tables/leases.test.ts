import { beforeEach, describe, expect, it } from "vitest";
import { freshStores, STORES } from "../../../test/support/stores.ts";
import type { Store } from "../store.ts";
import type { JobEnd } from "./jobs.ts";
import { type Lease, LostLease } from "./leases.ts";
import { type Tables, tablesOn } from "./tables.ts";

const LEASE_MS = 60_000;
const END: JobEnd = {
  ...{ status: "COMPLETED", errorMessage: null, toStep: 1, report: null, rewardStdDev: null, tokens: 0 },
  event: { type: "training_ended", data: {} },
};

describe.each(STORES)("leases on %s", (kind) => {
  const fresh = freshStores(kind);
  let store: Store;
  let tables: Tables;
  beforeEach(async () => {
    store = await fresh();
    tables = tablesOn(store);
  });

  async function waiting(count: number, models = count): Promise<void> {
    for (let i = 0; i < count; i++) {
      const job = { id: `j${i}`, modelId: `m${i % models}`, owner: "me", kind: "rl" as const, config: "{}" };
      await tables.jobTable.insert({ ...job, idempotencyKey: null, requestHash: null, openBytes: 0, recordBytes: 0 });
    }
  }
  const claim = async (worker = "w", ms = LEASE_MS) => (await tables.leaseTable.claim(worker, ms))!;
  /** As if its server had been silent for longer than its lease. */
  const expire = ({ jobId }: Lease) => store.run("UPDATE jobs SET lease_until = 1 WHERE id = ?1", jobId);
  /** Everything a holder may write. */
  const writes = (lease: Lease): [string, () => Promise<unknown>][] => {
    const { leaseTable } = tables;
    return [
      ["renew", () => leaseTable.renew(lease)],
      ["start", () => leaseTable.start(lease, 0)],
      ["setReport", () => leaseTable.setReport(lease, "{}", "{}", 3)],
      ["setProgress", () => leaseTable.setProgress(lease, 0.5)],
      ["addEvent", () => store.transaction((tx) => tablesOn(tx).leaseTable.addEvent(lease, "gradient_step", {}))],
      ["requeue", () => leaseTable.requeue(lease, true)],
      ["finish", () => store.transaction((tx) => tablesOn(tx).leaseTable.finish(lease, END))],
    ];
  };
  const everything = async () => [
    await store.all("SELECT * FROM jobs ORDER BY seq"),
    await store.all("SELECT * FROM job_events ORDER BY seq"),
  ];

  it("each of eight servers that claim at once gets another job, the oldest first", async () => {
    await waiting(20, 10);
    const claims = await Promise.all(Array.from({ length: 8 }, (_, i) => claim(`w${i}`)));
    const ids = claims.map(({ job }) => job.id).sort();
    expect(ids).toEqual(["j0", "j1", "j2", "j3", "j4", "j5", "j6", "j7"]);
    for (const { job, lease } of claims) {
      expect(job).toMatchObject({ status: "RUNNING", attempts: 1 });
      expect(lease).toEqual({ jobId: job.id, epoch: 1, ms: LEASE_MS });
    }
  });

  it("jobs of a model follow one another, however many servers there are", async () => {
    await waiting(6, 2);
    const claims = await Promise.all(Array.from({ length: 8 }, () => tables.leaseTable.claim("w", LEASE_MS)));
    expect(claims.flatMap((one) => (one ? [one.job.id] : [])).sort()).toEqual(["j0", "j1"]);
    // the rule holds below the claim too
    await expect(store.run("UPDATE jobs SET status = 'RUNNING' WHERE id = 'j2'")).rejects.toThrow(/unique/i);
  });

  it("a job that went back goes before the later ones of its model, under a new epoch", async () => {
    await waiting(2, 1);
    const first = await claim();
    await tables.leaseTable.requeue(first.lease, true);
    const second = await claim();
    expect(second).toMatchObject({ job: { id: "j0", attempts: 2 }, lease: { epoch: 2 } });
    await tables.leaseTable.requeue(second.lease, false);
    expect((await tables.jobTable.get("j0"))!.attempts).toBe(1);
  });

  it("nothing that a server writes changes anything once it lost its lease", async () => {
    await waiting(1);
    const lost = (await claim()).lease;
    await tables.leaseTable.requeue(lost, true);
    for (const now of ["waits", "runs elsewhere", "is over"]) {
      if (now === "runs elsewhere") await claim("other");
      if (now === "is over") {
        const { lease } = (await tables.leaseTable.running({ expired: false }))[0]!;
        await store.transaction((tx) => tablesOn(tx).leaseTable.finish(lease, END));
      }
      const before = await everything();
      for (const [name, write] of writes(lost)) {
        await expect(write(), `${name} while it ${now}`).rejects.toThrow(LostLease);
      }
      expect(await everything()).toEqual(before);
    }
  });

  it("every write of the holder renews the lease, and a renewal tells of a cancellation", async () => {
    await waiting(1);
    const { lease } = await claim();
    for (const [name, write] of writes(lease).slice(0, -2)) {
      await expire(lease);
      expect(await tables.leaseTable.running({ expired: true }), name).toHaveLength(1);
      await write();
      expect(await tables.leaseTable.running({ expired: true }), name).toEqual([]);
    }
    expect(await tables.leaseTable.renew(lease)).toEqual({ cancelRequested: false });
    await tables.jobTable.requestCancel(lease.jobId);
    expect(await tables.leaseTable.renew(lease)).toEqual({ cancelRequested: true });
  });

  it("a lease expires by the clock of the database, and only then may the job be taken over", async () => {
    await waiting(2);
    const [long, short] = [await claim(), await claim("w", 1)];
    await expect.poll(() => tables.leaseTable.running({ expired: true })).toHaveLength(1);
    await tables.leaseTable.assertExpired(short.lease);
    await expect(tables.leaseTable.assertExpired(long.lease)).rejects.toThrow(LostLease);
    expect((await tables.leaseTable.running({ expired: false })).map(({ lease }) => lease.jobId)).toEqual(["j0", "j1"]);
    expect(await tables.leaseTable.of("j0")).toMatchObject({ jobId: "j0", epoch: 1 });
    expect(await tables.leaseTable.of("nothing")).toBeNull();
  });

  it("a job that waits ends at once, a running one does not", async () => {
    await waiting(2);
    await claim();
    const end: JobEnd = { ...END, status: "CANCELLED", errorMessage: "a\0b" };
    const both = ["j0", "j1"].map((id) => store.transaction((tx) => tablesOn(tx).jobTable.endWaiting(id, end)));
    expect(await Promise.all(both)).toEqual([null, expect.objectContaining({ type: "training_ended" })]);
    expect(await tables.jobTable.get("j1")).toMatchObject({ status: "CANCELLED", errorMessage: "a\uFFFDb" });
  });
});
