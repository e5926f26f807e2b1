import { expect, it } from "vitest";
import { isLoopback } from "./text.ts";

it("knows loopback addresses", () => {
  const loopback = ["localhost", "127.0.0.1", "127.9.9.9", "::1"];
  const others = ["0.0.0.0", "::", "192.168.0.1", "127.0.0.1.example.org", "example.org"];
  expect([...loopback, ...others].filter(isLoopback)).toEqual(loopback);
});
