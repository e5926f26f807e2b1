import { expect, it } from "vitest";
import { NoAdapterSlot } from "../../model/lora/adapter-host.ts";
import type { HttpClient, Reply } from "./http-client.ts";
import { RemoteAdapters } from "./remote-adapters.ts";

const FULL = "The adapter cannot be used: all 2 adapter slots are in use";

/** A server with room for two adapters. `lose`: it does what it is asked, and the answer is lost. */
function serverOfTwo() {
  const loaded = new Set<string>();
  const server = { loaded, lose: false };
  const reply = (status: number, json: unknown): Reply => ({ status, text: JSON.stringify(json) });
  const answer = (path: string, name: string | undefined): Reply => {
    if (path === "/v1/engine")
      return reply(200, { adapters: [...loaded].map((one) => ({ name: one, idle_seconds: 0 })) });
    if (path.includes("unload")) return reply(loaded.delete(name!) ? 200 : 404, {});
    if (loaded.size === 2) return reply(400, { error: { message: FULL } });
    loaded.add(name!);
    return reply(200, {});
  };
  const whole = async (_method: string, path: string, { body }: { body?: unknown }) => {
    await Promise.resolve();
    const answered = answer(path, (body as { lora_name?: string } | undefined)?.lora_name);
    if (server.lose) throw new Error("the connection was lost");
    return answered;
  };
  return { server, adapters: new RemoteAdapters({ whole } as unknown as HttpClient, "me", () => {}) };
}

const signal = new AbortController().signal;

it("makes room with an adapter whose load got no answer", async () => {
  const { server, adapters } = serverOfTwo();
  server.lose = true;
  await expect(adapters.load("a", "/a", signal)).rejects.toThrow("the connection was lost");
  server.lose = false;
  await adapters.load("b", "/b", signal);
  await adapters.load("c", "/c", signal);
  expect([...server.loaded]).toEqual(["fw-me-b", "fw-me-c"]);
});

it("makes room once for each of two loads at the same time", async () => {
  const { server, adapters } = serverOfTwo();
  for (const old of ["x", "y"]) server.loaded.add(`fw-me-${old}`);
  await Promise.all([adapters.load("a", "/a", signal), adapters.load("b", "/b", signal)]);
  expect([...server.loaded].sort()).toEqual(["fw-me-a", "fw-me-b"]);
});

it("says that there is no slot, which may pass, while other servers have them all", async () => {
  const { server, adapters } = serverOfTwo();
  for (const other of ["x", "y"]) server.loaded.add(`fw-other-${other}`);
  const refused = await adapters.load("a", "/a", signal).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(NoAdapterSlot);
  expect(refused).toMatchObject({ passing: true, message: `the engine refuses the adapter: ${FULL}` });
});
