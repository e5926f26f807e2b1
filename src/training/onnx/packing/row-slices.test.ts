import { expect, it } from "vitest";
import { SLICE_ROWS } from "./pack-plan.ts";
import { sliceRows } from "./row-slices.ts";

it.each([1, 2, 256, 257, 65_537, 100_000])(
  "divides %i rows into slices that follow each other, none with a lone row",
  (count) => {
    const slices = sliceRows(count);
    let next = 0;
    for (const slice of slices) {
      expect(slice.row).toBe(next);
      expect(slice.count).toBeLessThanOrEqual(SLICE_ROWS);
      expect(slice.count).toBeGreaterThan(count === 1 ? 0 : 1);
      next += slice.count;
    }
    expect(next).toBe(count);
  },
);
