import { afterAll, expect, test } from "vitest";
import type { Constraint, OutputShape } from "./constraint.ts";
import { GrammarService } from "./grammar-service.ts";

const service = new GrammarService();
afterAll(() => service.close());

function constraint(shape: OutputShape): Constraint {
  return { shape, reasoning: null, param: "structured_outputs" };
}

const regex = (pattern: string): Constraint => constraint({ kind: "regex", pattern });

test("compiles in a worker, and compiles equal content only once", async () => {
  let compilations = 0;
  const counting = new GrammarService({ onCompiled: () => compilations++ });
  const keys = await Promise.all([regex("a+"), regex("b+"), regex("a+")].map((each) => counting.compile(each, "a")));
  expect(keys[0]).toEqual(keys[2]);
  expect(keys[0]).not.toEqual(keys[1]);
  await counting.compile(regex("a+"), "a");
  expect(compilations).toBe(2);
  await counting.close();
});

test("a refusal gives the reason and the field, even when it is cached", async () => {
  for (let time = 0; time < 2; time++) {
    await expect(service.compile({ ...regex("a(b"), param: "response_format" }, "a")).rejects.toMatchObject({
      name: "ConstraintError",
      param: "response_format",
      message: "invalid regex: unclosed group, at position 1",
    });
  }
});

test("a compilation that takes too long is refused and the next one succeeds", async () => {
  const impatient = new GrammarService({ threads: 1, timeoutMs: 500 });
  // The automaton has to remember which of the last eleven letters were an a.
  const heavy = (_: unknown, i: number) =>
    [`p${i}`, { type: "string", not: { pattern: `^[ab]*a[ab]{11}c{${i}}$` } }] as const;
  const properties = Object.fromEntries(Array.from({ length: 100 }, heavy));
  const slow = constraint({ kind: "json_schema", schema: { type: "object", properties }, json });
  const [refused, served] = await Promise.allSettled([
    impatient.compile(slow, "a"),
    impatient.compile(regex("x"), "a"),
  ]);
  expect(refused.status === "rejected" && String(refused.reason)).toMatch(/did not compile within 0.5 s/);
  expect(served.status).toBe("fulfilled");
  await impatient.close();
});

test("a keyword that no draft defines is reported once", async () => {
  const keywords: string[] = [];
  const reporting = new GrammarService({ threads: 1, onIgnored: (keyword) => keywords.push(keyword) });
  for (const type of ["null", "boolean"])
    await reporting.compile(constraint({ kind: "json_schema", schema: { type, strict: true }, json }), "a");
  expect(keywords).toEqual(["strict"]);
  await reporting.close();
});

test("one client's constraints do not wait behind another's", async () => {
  const one = new GrammarService({ threads: 1 });
  const order: string[] = [];
  const send = (name: string, client: string, each: Constraint) =>
    one.compile(each, client).then(() => order.push(name));
  const large = (i: number) => regex(`${i}${"[a-c]".repeat(500)}`);
  await Promise.all([
    ...Array.from({ length: 20 }, (_, i) => send(`a${i}`, "a", large(i))),
    send("b0", "b", regex("x")),
    send("b1", "b", large(19)),
  ]);
  expect(order.slice(0, 2)).toEqual(["a0", "b0"]);
  // Asked for by both, it is compiled once, when it is the turn of the first of them.
  expect(order.indexOf("b1")).toBeLessThan(6);
  expect(order.indexOf("a19")).toBeLessThan(6);
  await one.close();
});

test("bounds what one client has waiting, and nobody else's", async () => {
  const one = new GrammarService({ threads: 1 });
  const asked = await Promise.allSettled(Array.from({ length: 110 }, (_, i) => one.compile(regex(`a{${i + 1}}`), "a")));
  const refused = asked.filter((each) => each.status === "rejected");
  expect(refused.map(({ reason }) => reason.name)).toEqual(Array(9).fill("QueueFullError"));
  await expect(one.compile(regex("b"), "b")).resolves.toHaveProperty("key");
  await one.close();
});

test("a queued compilation is dropped when nobody waits for it", async () => {
  let compilations = 0;
  const one = new GrammarService({ threads: 1, onCompiled: () => compilations++ });
  const large = (i: number) => regex(`${i}${"[a-c]".repeat(500)}`);
  const first = one.compile(large(0), "a");
  const gone = [new AbortController(), new AbortController(), new AbortController()];
  const asked = [large(1), large(1), large(2)].map((each, i) => one.compile(each, "a", [gone[i]!.signal]));
  gone[0]!.abort();
  gone[2]!.abort();
  expect(await asked[0]).toBeNull();
  expect(await asked[2]).toBeNull();
  expect(await first).not.toBeNull();
  expect(await asked[1]).not.toBeNull(); // somebody else still wanted it
  expect(compilations).toBe(2);
  expect(await one.compile(large(3), "a", [AbortSignal.abort()])).toBeNull();
  expect(await one.compile(large(2), "a")).not.toBeNull();
  expect(compilations).toBe(3);
  await one.close();
});

test("a compilation that has started runs once, outlives its callers and serves later callers", async () => {
  let compilations = 0;
  const one = new GrammarService({ threads: 1, onCompiled: () => compilations++ });
  const slow = regex("[a-c]".repeat(2000));
  for (let attempt = 0; attempt < 3; attempt++) {
    const gone = new AbortController();
    const asked = one.compile(slow, "a", [gone.signal]);
    gone.abort();
    expect(await asked).toBeNull();
  }
  expect(await one.compile(slow, "a")).not.toBeNull();
  expect(await one.compile(slow, "a")).not.toBeNull();
  expect(compilations).toBe(1);
  await one.close();
});

test("a constraint that timed out can be tried again", async () => {
  let compilations = 0;
  const impatient = new GrammarService({ threads: 1, timeoutMs: 1, onCompiled: () => compilations++ });
  const values = Array.from({ length: 20_000 }, (_, i) => `v${i}`);
  const slow = constraint({ kind: "choice", choices: values });
  for (let attempt = 1; attempt <= 2; attempt++) {
    await expect(impatient.compile(slow, "a")).rejects.toThrow(/did not compile within/);
    expect(compilations).toBe(attempt);
  }
  await impatient.close();
});

test("a compilation that needs too much memory is refused without harming others", async () => {
  const small = new GrammarService({ threads: 2, memoryMb: 24 });
  const hungry = regex(Array.from({ length: 60_000 }, (_, i) => `[a-z]{1,3}w${i}`).join("|"));
  const [refused, served] = await Promise.allSettled([small.compile(hungry, "a"), small.compile(regex("x"), "a")]);
  expect(refused.status === "rejected" && String(refused.reason)).toMatch(/too complex|too large/);
  expect(served.status).toBe("fulfilled");
  await small.close();
});

test("refuses a thousand malformed constraints and keeps working", async () => {
  const bad: Constraint[] = Array.from({ length: 1000 }, (_, i) => {
    const shapes: OutputShape[] = [
      { kind: "regex", pattern: `(${i}` },
      { kind: "regex", pattern: `a{${i + 2},${i}}` },
      { kind: "grammar", source: `root ::= missing${i}` },
      { kind: "grammar", source: `start: missing${i}` },
      { kind: "choice", choices: [] },
      { kind: "structural_tag", tag: { format: { type: `t${i}` } }, json },
      { kind: "json_schema", schema: { type: "object", properties: { [`p${i}`]: { not: 1 } } }, json },
      { kind: "json_schema", schema: { type: `keyword${i}` }, json },
    ];
    return constraint(shapes[i % shapes.length]!);
  });
  const results = await Promise.allSettled(bad.map((each, i) => service.compile(each, `client ${i % 20}`)));
  for (const result of results)
    expect(result).toMatchObject({ status: "rejected", reason: { name: "ConstraintError" } });
  await expect(service.compile(regex("still [a-z]+"), "a")).resolves.toHaveProperty("key");
});

const json = { compact: false, closedObjects: false, whitespacePattern: null };

test("refuses very deep input without crashing", async () => {
  let schema: object = { type: "string" };
  for (let depth = 0; depth < 10_000; depth++) schema = { items: schema };
  const deep = constraint({ kind: "json_schema", schema: schema as never, json });
  await expect(service.compile(deep, "a")).rejects.toThrow(/nested/);
  await expect(service.compile(regex("(".repeat(50_000)), "a")).rejects.toThrow(/nested deeper/);
});
