// What an exception says is for the log: it may name hosts, files and other people's data. Replies have texts of ours.
import { expect, it, vi } from "vitest";
import { shared } from "../support/shared-server.ts";
import { startTrainingServer } from "../wire/training/training-server.ts";

const server = shared(() => startTrainingServer());

const SECRET = "connect ECONNREFUSED 10.0.0.5:5432, /var/lib/secret";

it("the public check of the system shows no text of an exception", async () => {
  const fail = () => {
    throw new Error(SECRET);
  };
  for (const check of ["checkDatabase", "checkTrainer", "checkEngines"] as const) {
    vi.spyOn(server.bench.service, check).mockImplementation(fail);
  }
  const { status, json } = await server.call("GET", "/v1/system-check", undefined, { as: null });
  vi.restoreAllMocks();
  expect(status).toBe(503);
  expect(JSON.stringify(json)).not.toContain("10.0.0.5");
  for (const part of [json.database, json.cpu_queue, json.gpu_queue]) {
    expect(part).toMatchObject({ success: false, errors: ["Internal server error"] });
  }
});
