import { describe, expect, it } from "vitest";
import { FakeReplica } from "../../../test/support/fake-replica.ts";
import { generateRequest } from "../../../test/support/requests.ts";
import { Dispatcher, type Place } from "./dispatcher.ts";
import { Member } from "./member.ts";

const range = (length: number, from = 0) => Array.from({ length }, (_, i) => (from + i) % 250);

/** `timeoutMs`: see DispatcherOptions. */
function setUp(replicas: readonly FakeReplica[], timeoutMs = 20) {
  const members = replicas.map((replica) => new Member(replica));
  const dispatcher = new Dispatcher(members, { isLoaded: () => true }, { timeoutMs, prefixCaching: true });
  const places = new Map<string, Place | null>();
  const ask = (name: string, prompt: number[], { rank = 0, n = 1, maxTokens = 8 } = {}) => {
    const onPlace = (place: Place | null) => void places.set(name, place);
    dispatcher.enter({ request: generateRequest(prompt, { maxTokens }, { n }), rank, avoid: null, onPlace });
    return onPlace;
  };
  const end = (name: string) => {
    const { member, job } = places.get(name)!;
    while (job.choices > 0) member.endChoice(job);
    dispatcher.serve();
  };
  return { members, dispatcher, places, ask, end };
}

describe("the line before full replicas", () => {
  it("is served by rank, then by arrival, and nobody overtakes a request that needs more room", () => {
    const { dispatcher, places, ask, end } = setUp([new FakeReplica("a", { maxInFlight: 2 })]);
    ask("first", [5], { n: 2 });
    ask("late", [5], { rank: 3 });
    ask("wide", [5], { rank: 1, n: 5 });
    ask("small", [5], { rank: 2 });
    expect([...places.keys()]).toEqual(["first"]);
    expect(dispatcher.waiting).toBe(7);
    end("first");
    expect([...places.keys()]).toEqual(["first", "wide"]);
    end("wide");
    expect([...places.keys()]).toEqual(["first", "wide", "small", "late"]);
  });

  it("keeps a place free that the first in line cannot use yet", () => {
    const { places, ask, end } = setUp([new FakeReplica("a", { maxInFlight: 2 })]);
    ask("first", [5]);
    ask("pair", [5], { n: 2 });
    ask("small", [5]);
    expect([...places.keys()]).toEqual(["first"]);
    end("first");
    expect([...places.keys()]).toEqual(["first", "pair"]);
    end("pair");
    expect([...places.keys()]).toEqual(["first", "pair", "small"]);
  });

  it("can be left", () => {
    const { dispatcher, places, ask, end } = setUp([new FakeReplica("a", { maxInFlight: 1 })]);
    ask("first", [5]);
    const second = ask("second", [5]);
    ask("third", [5]);
    dispatcher.withdraw(second);
    dispatcher.withdraw(second);
    end("first");
    expect([...places.keys()]).toEqual(["first", "third"]);
  });

  it("does not wait for ever when no replica is ready, but goes on when one comes back in time", async () => {
    const replica = new FakeReplica("a");
    const patient = setUp([replica], 60_000);
    replica.state = "away";
    patient.ask("early", [5]);
    expect(patient.dispatcher.waiting).toBe(1);
    replica.state = "ready";
    patient.dispatcher.serve();
    expect(patient.places.get("early")).not.toBeNull();
    replica.state = "away";
    const { dispatcher, places, ask } = setUp([replica], 20);
    ask("too long", [5]);
    await expect.poll(() => places.get("too long")).toBeNull();
    expect(dispatcher.waiting).toBe(0);
  });

  it("is not held up by a request that only an absent replica could run", async () => {
    const long = new FakeReplica("long", { runner: { maxPositions: 400 } });
    const short = new FakeReplica("short", { runner: { maxPositions: 100 } });
    const { places, ask } = setUp([long, short], 60_000);
    long.state = "away";
    ask("long", range(200));
    ask("short", range(20));
    expect([...places.keys()]).toEqual(["short"]);
  });

  it("leaves a replica alone after an early failure, longer each time, until it restarts", async () => {
    const replica = new FakeReplica("a");
    const { members, places, ask } = setUp([replica], 60_000);
    const [member] = members;
    expect(member!.failed(true)).toBe(true);
    expect(member!.failed(true)).toBe(false);
    expect(member!.pauseLeft).toBeGreaterThan(900);
    expect(member!.facts()).toMatchObject({ state: "excluded", failures: 2 });
    ask("waits", [5]);
    expect(places.size).toBe(0);
    await expect.poll(() => places.size).toBe(1); // without any event
    expect(member!.failed(true)).toBe(true);
    expect(member!.pauseLeft).toBeGreaterThan(1500);
    replica.die(false);
    replica.revive();
    expect(member!.noticeRestart()).toBe(true);
    expect(member!.available).toBe(true);
    member!.succeeded();
    expect(member!.failed(false)).toBe(false);
    expect(member!.available).toBe(true);
  });
});

describe("groups of requests with the same prompt on three replicas", () => {
  it("find their prefix nearly always, and the load is even", () => {
    const info = { runner: { maxPositions: 4096, numBlocks: 2048, positionsPerBlock: 16 }, maxInFlight: 64 };
    const { members, places, ask, end } = setUp(["a", "b", "c"].map((name) => new FakeReplica(name, info)));
    const groups = Array.from({ length: 16 }, (_, group) => range(640 + group * 16, group * 17));
    const arrivals = groups.flatMap((prompt, group) =>
      Array.from({ length: 8 }, (_, i) => ({ prompt, name: `${group}.${i}` })),
    );
    // As a job sends them: all groups at once, interleaved.
    arrivals.sort((a, b) => Number(a.name.split(".")[1]) - Number(b.name.split(".")[1]));
    const work = new Map(members.map((member) => [member, 0]));
    let computed = 0;
    for (const [i, { prompt, name }] of arrivals.entries()) {
      ask(name, prompt, { maxTokens: 64 });
      const { member, job } = places.get(name)!;
      computed += job.uncomputed;
      work.set(member, work.get(member)! + job.uncomputed + 64);
      job.uncomputed = 0; // prompts are computed while others arrive
      if (i >= 48) end(arrivals[i - 48]!.name);
    }
    const all = arrivals.reduce((sum, { prompt }) => sum + prompt.length, 0);
    const ideal = all - groups.reduce((sum, prompt) => sum + prompt.length, 0);
    expect((all - computed) / ideal).toBeGreaterThanOrEqual(0.9);
    const loads = [...work.values()];
    expect(Math.max(...loads) / (loads.reduce((sum, load) => sum + load, 0) / 3)).toBeLessThanOrEqual(1.5);
  });
});
