import { expect, it } from "vitest";
import { readLoraModule } from "./lora-modules.ts";

it("reads adapters from the command line", () => {
  expect(readLoraModule("a=/x=y")).toEqual({ name: "a", path: "/x=y" });
  expect(readLoraModule('{"name":"a","path":"b","base_model_name":"c"}')).toEqual({ name: "a", path: "b" });
  for (const bad of ["a", "=b", "a=", '{"name":"a"}', '{"nam":"a","path":"b=c"}', "{"]) {
    expect(() => readLoraModule(bad), bad).toThrow(/lora-modules/);
  }
});
