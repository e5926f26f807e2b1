import { expect, it } from "vitest";
import { FakeAdapters } from "../../../test/fakes/fake-adapters.ts";
import { reloadAdapters } from "./reload-adapters.ts";

async function reloaded(...adapters: { version: string; folders: string[] }[]) {
  const host = new FakeAdapters(2);
  const faults: string[] = [];
  await reloadAdapters(
    adapters,
    { loadAdapter: (folder) => host.load(folder), unloadAdapter: (version) => host.unload(version) },
    (error) => faults.push(`${error.message}: ${(error.cause as Error).message}`),
  );
  return { slots: host.slots, faults };
}

it("takes the first folder that has the content", async () => {
  const red = { version: "version of red", folders: ["missing", "blue", "red", "red copy"] };
  expect(await reloaded(red)).toEqual({ slots: ["version of red", null], faults: [] });
});

it("gives no slot to unwanted content, and reports what is lost", async () => {
  const { slots, faults } = await reloaded(
    { version: "version of red", folders: ["changed"] },
    { version: "version of blue", folders: ["blue"] },
    { version: "version of green", folders: ["missing", "blue"] },
  );
  expect(slots).toEqual(["version of blue", null]);
  expect(faults).toEqual([
    "adapter version of red was not loaded again from changed: the folder has other content now",
    "adapter version of green was not loaded again from missing, blue: the folder has other content now",
  ]);
});
