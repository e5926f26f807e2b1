import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { need, needing, POSIX } from "../../../test/support/needs.ts";
import { PROJECT_STORE, storesOf } from "../../../test/support/stores.ts";
import { OperatorError } from "../../errors/faults.ts";
import type { Store } from "../../store/store.ts";
import { claimStorage, FolderMarker } from "./claim-storage.ts";

const openIn = storesOf(PROJECT_STORE);
const open: Store[] = [];
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
});

const newFolder = () => mkdtempSync(join(tmpdir(), "storage-"));
/** `of`: a folder, for one more connection to its database. */
async function database(of = newFolder()): Promise<Store> {
  const store = await openIn(of);
  open.push(store);
  return store;
}
const claim = (folder: string, store: Store) => claimStorage(new FolderMarker(folder), store);
async function refusal(folder: string, store: Store): Promise<string> {
  const error = await claim(folder, store).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(OperatorError);
  expect((error as Error).message).not.toContain("\n");
  return (error as Error).message;
}

it("takes an empty folder for a database, and knows it again", async () => {
  const [folder, store] = [newFolder(), await database()];
  await Promise.all([claim(folder, store), claim(folder, store)]);
  expect(readdirSync(folder)).toEqual(["flywheel-storage.json"]);
  await claim(folder, store);
});

it("refuses the folder of another database, and leaves it as it is", async () => {
  const [folder, other] = [newFolder(), await database()];
  await claim(folder, await database());
  expect(await refusal(folder, other)).toMatch(/belongs to another database/);
  expect(readdirSync(folder)).toEqual(["flywheel-storage.json"]);
  // the refused database is still free to take another one
  await claim(newFolder(), other);
});

it("refuses a folder that is not the one of the other servers, and leaves nothing in it", async () => {
  const [folder, local] = [newFolder(), newFolder()];
  const shared = newFolder();
  await claim(folder, await database(shared));
  expect(await refusal(local, await database(shared))).toMatch(/is not the folder with the files of this database/);
  expect(readdirSync(local)).toEqual([]);
});

it("lets one of two servers begin that start at once on different folders", async () => {
  const folders = [newFolder(), newFolder()];
  const shared = newFolder();
  const stores = [await database(shared), await database(shared)];
  const results = await Promise.allSettled(folders.map((folder, i) => claim(folder, stores[i]!)));
  expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  const loser = folders[results.findIndex(({ status }) => status === "rejected")]!;
  expect(readdirSync(loser)).toEqual([]);
});

it("goes on after a crash between the file and the row", async () => {
  const [folder, store] = [newFolder(), await database()];
  await claim(folder, store);
  await store.run("UPDATE storage SET folder_id = NULL");
  await claim(folder, store);
});

it("says in one line what is wrong with a folder that cannot be used", async () => {
  const [folder, store] = [newFolder(), await database()];
  expect(await refusal(join(folder, "missing"), store)).toMatch(/does not exist: make the folder, or mount it/);
  writeFileSync(join(folder, "file"), "");
  expect(await refusal(join(folder, "file"), store)).toMatch(/is not a folder/);
  writeFileSync(join(folder, "flywheel-storage.json"), "{");
  expect(await refusal(folder, store)).toMatch(/is damaged/);
  rmSync(join(folder, "flywheel-storage.json"));
  await claim(folder, store);
});

const isRoot = process.getuid?.() === 0;
needing(POSIX, need("Linux, or a user other than root", process.platform === "linux" || !isRoot)).it(
  "refuses a folder that it cannot write to",
  async () => {
    const folder = isRoot ? "/sys" : newFolder(); // modes do not stop root
    if (!isRoot) chmodSync(folder, 0o500);
    expect(await refusal(folder, await database())).toMatch(/cannot write to --storage/);
  },
);
