import { expect, it } from "vitest";
import { KeyedSerialWork, SerialWork } from "./work.ts";

/** Work that notes when it begins and ends, and ends when told to. */
function noted(notes: string[], name: string) {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const work = async () => {
    notes.push(`${name} begins`);
    await ended;
    notes.push(`${name} ends`);
  };
  return { work, end };
}

const aTurn = () => new Promise((resolve) => setImmediate(resolve));

it("starts a piece when the one before has ended, also after a failure", async () => {
  const turns = new SerialWork();
  const notes: string[] = [];
  const first = noted(notes, "first");
  const failed = expect(turns.run(() => first.work().then(() => Promise.reject(new Error("broken"))))).rejects.toThrow(
    "broken",
  );
  const second = turns.run(async () => notes.push("second"));
  await aTurn();
  expect(notes).toEqual(["first begins"]);
  first.end();
  await failed;
  await second;
  expect(notes).toEqual(["first begins", "first ends", "second"]);
});

it("is idle when all work has ended, whether it failed or not", async () => {
  const turns = new SerialWork();
  const notes: string[] = [];
  turns.run(() => Promise.reject(new Error("broken"))).catch(() => notes.push("failed"));
  await turns.idle();
  await aTurn();
  expect(notes).toEqual(["failed"]);
});

it("lets work with different keys overlap", async () => {
  const turns = new KeyedSerialWork();
  const notes: string[] = [];
  const a = noted(notes, "a");
  const b = noted(notes, "b");
  const all = [turns.run("a", a.work), turns.run("a", async () => notes.push("a again")), turns.run("b", b.work)];
  await aTurn();
  expect(notes).toEqual(["a begins", "b begins"]);
  b.end();
  a.end();
  await Promise.all(all);
  expect(notes.indexOf("a again")).toBeGreaterThan(notes.indexOf("a ends"));
  await turns.idle();
});
