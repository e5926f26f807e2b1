import { expect, it } from "vitest";
import { ago, bytes, count, duration, number, percent } from "./format.ts";

it("writes numbers with three digits", () => {
  const values = [0, 1, 0.98765, -0.0123, 1234.5, 12, 1e-6, Number.NaN, Number.NEGATIVE_INFINITY];
  expect(values.map((value) => number(value))).toEqual([
    "0",
    "1",
    "0.988",
    "−0.0123",
    "1,235",
    "12",
    "1.0e−6",
    "–",
    "−∞",
  ]);
});

it("writes shares, times and sizes", () => {
  expect([0, 0.0004, 0.004, 0.415, 0.999, 0.9999, 1].map(percent)).toEqual([
    "0 %",
    "< 0.1 %",
    "0.4 %",
    "42 %",
    "99.9 %",
    "> 99.9 %",
    "100 %",
  ]);
  expect([5.4, 1800, 200_000, 11_520_000, 9e8].map(duration)).toEqual(["5 ms", "1.8 s", "3 min", "3 h 12", "10 days"]);
  expect([0, 999, 1500, 22_400_000, 3.2e9].map(bytes)).toEqual(["0 B", "999 B", "1.5 kB", "22 MB", "3.2 GB"]);
  expect(ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:02:00Z"))).toBe("2 min ago");
  expect([count(1, "token"), count(2, "token")]).toEqual(["1 token", "2 tokens"]);
});
