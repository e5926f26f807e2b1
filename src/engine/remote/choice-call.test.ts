import { expect, it } from "vitest";
import { EventReader } from "./choice-call.ts";

function payloadsOf(pieces: readonly string[]): string[] {
  const payloads: string[] = [];
  const reader = new EventReader((payload) => payloads.push(payload));
  for (const piece of pieces) reader.push(Buffer.from(piece));
  return payloads;
}

it("finds the payloads however the network cuts the stream", () => {
  const text = 'data: {"a":1}\r\n\r\n: comment\ndata:[DONE]\n\ndata: unfinished';
  for (let size = 1; size <= text.length; size++) {
    const pieces = text.match(new RegExp(`[^]{1,${size}}`, "g"))!;
    expect(payloadsOf(pieces)).toEqual(['{"a":1}', "[DONE]"]);
  }
});

it("takes four times as long for a line of four times as many pieces, not sixteen", () => {
  const timeOf = (count: number) => {
    const pieces = [...Array.from({ length: count }, () => "xxxxxxxx"), "\n"];
    const before = process.cpuUsage();
    payloadsOf(pieces);
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  const best = (count: number) => Math.min(...Array.from({ length: 3 }, () => timeOf(count)));
  best(20_000); // compiled now
  expect(best(80_000) / best(20_000)).toBeLessThan(10);
});
