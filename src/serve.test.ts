import { expect, it } from "vitest";
import { isLoopback, readLoraModule } from "./serve.ts";

it("knows loopback addresses", () => {
  expect(["localhost", "127.0.0.1", "127.9.9.9", "::1"].every(isLoopback)).toBe(true);
  expect(["0.0.0.0", "::", "192.168.0.1", "127.0.0.1.example.org", "example.org"].some(isLoopback)).toBe(false);
});

it("reads adapters from the command line", () => {
  expect(readLoraModule("a=/x=y")).toEqual({ name: "a", path: "/x=y" });
  expect(readLoraModule('{"name":"a","path":"b","base_model_name":"c"}')).toEqual({ name: "a", path: "b" });
  for (const bad of ["a", "=b", "a=", '{"name":"a"}', "{"]) {
    expect(() => readLoraModule(bad), bad).toThrow(/lora-modules/);
  }
});
