import { beforeEach, expect, it, vi } from "vitest";
import { chatFrom, chatText, forgetChats, keepChat, keptChat } from "./chats.ts";

/** As much of a browser's storage as is used. Keys are its own properties, as in browsers. */
class FakeStorage {
  readonly #room: number;
  constructor(room: number) {
    this.#room = room;
    Object.defineProperty(this, "room", { enumerable: false });
  }
  getItem(key: string): string | null {
    return (this as unknown as Record<string, string>)[key] ?? null;
  }
  setItem(key: string, value: string): void {
    const others = Object.entries(this).filter(([name]) => name !== key);
    const size = others.reduce((sum, [, text]) => sum + String(text).length, value.length);
    if (size > this.#room) throw new Error("QuotaExceededError");
    Object.assign(this, { [key]: value });
  }
  removeItem(key: string): void {
    delete (this as unknown as Record<string, string>)[key];
  }
}

const textAt = (at: number, filler = "") =>
  `{"object":"flywheel.chat","at":${at},"query":"","columns":[],"x":"${filler}"}`;

beforeEach(() => vi.stubGlobal("localStorage", new FakeStorage(1000)));

it("keeps a conversation, and forgets all of them together", () => {
  expect(keepChat("a", chatText("n=2", []))).toBe(true);
  expect(chatFrom(keptChat("a")!)).toMatchObject({ query: "n=2", columns: [] });
  expect(keptChat("b")).toBeNull();
  localStorage.setItem("flywheel.key", "k");
  forgetChats();
  expect([keptChat("a"), localStorage.getItem("flywheel.key")]).toEqual([null, "k"]);
});

it("lets the oldest go when there is no more room", () => {
  for (const [i, id] of ["old", "middle", "new"].entries()) keepChat(id, textAt(i, "x".repeat(200)));
  expect(keepChat("large", textAt(9, "x".repeat(500)))).toBe(true);
  expect(["old", "middle", "new", "large"].map((id) => keptChat(id) !== null)).toEqual([false, false, true, true]);
  expect(keepChat("huge", textAt(10, "x".repeat(2000)))).toBe(false);
});

it("keeps fifty", () => {
  vi.stubGlobal("localStorage", new FakeStorage(1e6));
  for (let i = 0; i < 60; i++) keepChat(`c${i}`, textAt(i));
  expect([keptChat("c9"), keptChat("c10") === null]).toEqual([null, false]);
});

it("says what is no conversation", () => {
  for (const text of ["{}", "null", '{"object":"flywheel.chat","columns":1}']) {
    expect(() => chatFrom(text)).toThrow("no conversation");
  }
});
