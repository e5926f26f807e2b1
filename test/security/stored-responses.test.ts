// Stored responses multiply what one small request loads: a chain of continued responses, items that are named by reference
// a thousand times, fields that nobody reads, and pages of the largest input. A server with a small heap lives on, and so
// does the next one on the same data.
import { statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startVictim, type Victim } from "./victim.ts";

const HEAP = 256;
const MIB = 2 ** 20;
/** Of --keep-responses. */
const KEPT = 16 * MIB;

let victim: Victim;
const start = async (data?: string) => {
  const args = ["--keep-responses", "16Mi/30d", "--max-model-len", "512"];
  victim = await startVictim({ heap: HEAP, args, ...(data === undefined ? {} : { data }) });
};
beforeAll(() => start());
afterAll(() => victim.stop());

interface Asked {
  status: number;
  id: string;
  message: string;
}

/** `truncation: auto` makes a prompt of any length fit. */
async function ask(fields: Record<string, unknown>): Promise<Asked> {
  const body = { max_output_tokens: 16, truncation: "auto", ...fields };
  const response = await victim.request("POST", "/v1/responses", body);
  const { id, error } = (await response.json()) as { id: string; error: { message: string } };
  return { status: response.status, id, message: error?.message };
}

const message = (bytes: number) => ({ role: "user", content: "x".repeat(bytes) });
const alive = async () => expect((await victim.request("GET", "/health")).status).toBe(200);

describe("a workspace's stored responses", () => {
  it("cannot be multiplied by references", async () => {
    const { id } = await ask({ input: [message(MIB)] });
    const reference = { type: "item_reference", id: `msg_${id.slice(5)}_in0` };
    const multiplied = await ask({ input: Array.from({ length: 1000 }, () => reference) });
    expect(multiplied).toMatchObject({ status: 400, message: expect.stringMatching(/\b4194304 bytes/) });
    await alive();
  });

  it("cannot be multiplied by continuing what refers to them", async () => {
    const { id } = await ask({ input: [message(MIB)] });
    const reference = { type: "item_reference", id: `msg_${id.slice(5)}_in0` };
    const input = [reference, reference, reference];
    const twice = await ask({ input });
    expect(twice.status).toBe(200);
    const again = await ask({ input, previous_response_id: twice.id });
    expect(again).toMatchObject({ status: 400, message: expect.stringContaining("4194304 bytes") });
  });

  it("are refused to many requests at once that continue the longest conversations", async () => {
    let { id } = await ask({ input: [message(MIB)] });
    for (let i = 0; i < 2; i++) ({ id } = await ask({ input: [message(0.9 * MIB)], previous_response_id: id }));
    const replies = await Promise.all(
      Array.from({ length: 300 }, () => ask({ input: "go on", previous_response_id: id, store: false })),
    );
    const statuses = new Set(replies.map(({ status }) => status));
    expect([...statuses].every((status) => status === 200 || status === 429)).toBe(true);
    expect(statuses).toContain(200);
    await alive();
  });

  it("hold no fields that nobody reads", async () => {
    const junk = { ...message(1), junk: "x".repeat(3.9 * MIB) };
    let previous: string | null = null;
    for (let i = 0; i < 100; i++) {
      const { status, id }: Asked = await ask({ input: [junk], previous_response_id: previous });
      expect(status).toBe(200);
      previous = id;
    }
    await alive();
  });

  it("take no more room than the workspace has", async () => {
    for (let i = 0; i < 40; i++) expect((await ask({ input: [message(2 * MIB)] })).status).toBe(200);
    expect(statSync(join(victim.data, "flywheel.db")).size).toBeLessThan(2.5 * KEPT);
  });

  it("are listed in pages that are bounded in bytes", async () => {
    const { id } = await ask({ input: Array.from({ length: 60 }, () => message(50_000)) });
    const pages = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const response = await victim.request("GET", `/v1/responses/${id}/input_items?limit=100`);
        return { status: response.status, bytes: (await response.arrayBuffer()).byteLength };
      }),
    );
    expect(pages.every(({ status }) => status === 200 || status === 429)).toBe(true);
    expect(Math.max(...pages.map(({ bytes }) => bytes))).toBeLessThan(1.1 * MIB);
    await alive();
  });

  it("do not keep a server from starting again", async () => {
    const { data } = victim;
    await victim.stop();
    await start(data);
    expect((await ask({ input: "hello" })).status).toBe(200);
  });
});
