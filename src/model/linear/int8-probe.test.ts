import { expect, it } from "vitest";
import { exactFor, probeDigitSteps } from "./int8-probe.ts";

it("finds digits whose products with any weight are exact", async () => {
  const steps = await probeDigitSteps();
  expect(await exactFor(2 * steps + 1)).toBe(true);
  // No machine may need less than this.
  expect(await exactFor(127)).toBe(true);
});
