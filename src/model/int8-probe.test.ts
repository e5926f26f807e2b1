import { expect, it } from "vitest";
import { probeInt8Range } from "./int8-probe.ts";

it("finds a range in which byte products are exact", async () => {
  expect([63, 127]).toContain(await probeInt8Range());
});
