import { expect, it } from "vitest";
import { Turns } from "./turns.ts";

it("lets one caller through per turn of the event loop, in order", async () => {
  const turns = new Turns();
  const order: string[] = [];
  const work = [0, 1, 2].map((i) => turns.next().then(() => order.push(`work ${i}`)));
  const other = (left: number) => {
    order.push("other");
    if (left > 0) setImmediate(other, left - 1);
  };
  setImmediate(other, 3);
  await Promise.all(work);
  expect(order.filter((entry) => entry !== "other")).toEqual(["work 0", "work 1", "work 2"]);
  expect(order.indexOf("work 2") - order.indexOf("work 0")).toBeGreaterThanOrEqual(4);
});
