// Expands the values of a row of a token matrix: dense ones as they are, spans over their positions.

import type { Loc, Violations } from "../../request/violations.ts";
import type { WireRow } from "./token-matrix.schema.ts";

export interface DenseRow {
  dtype: WireRow["dtype"];
  shape: readonly number[];
  values: number[];
}

/** Values of one row, and targets of one batch. Spans could otherwise describe far more than they say. */
export const MAX_VALUES = 2 ** 20;

/** A row with problems has no values. */
export function denseRow({ dtype, shape, values }: WireRow, loc: Loc, issues: Violations): DenseRow {
  const fail = (field: string, problem: string): DenseRow => {
    issues.add([...loc, ...field.split(".")], "value_error", `Value error, ${problem}`);
    return { dtype, shape, values: [] };
  };
  const [length = 1, width = 1] = shape;
  if (shape.length > 2) return fail("shape", "use one or two dimensions");
  if (length * width > MAX_VALUES) return fail("shape", `a row may have up to ${MAX_VALUES} values`);
  const isValid = dtype === "float32" ? isFiniteNumber : Number.isSafeInteger;
  if (values.encoding === "dense") {
    const data = values.data ?? [];
    if (data.length !== length * width) return fail("values.data", `the shape has ${length * width} values`);
    if (!data.every(isValid)) return fail("values.data", `every value must be a valid ${dtype}`);
    return { dtype, shape, values: data as number[] };
  }
  const filled = elementOf(values.default, width, isValid);
  if (!filled) return fail("values.default", `give ${width} valid ${dtype} for each position`);
  const dense = Array.from({ length: length * width }, (_, i) => filled[i % width]!);
  let last = 0;
  for (const [i, { start, end, value }] of (values.spans ?? []).entries()) {
    const element = elementOf(value, width, isValid);
    if (!element) return fail(`values.spans.${i}.value`, `give ${width} valid ${dtype} for each position`);
    if (start < last || end <= start || end > length) {
      return fail(`values.spans.${i}`, "spans must be in order, without overlap and inside the row");
    }
    for (let at = start * width; at < end * width; at++) dense[at] = element[at % width]!;
    last = end;
  }
  return { dtype, shape, values: dense };
}

function elementOf(value: unknown, width: number, isValid: (value: unknown) => boolean): number[] | null {
  const element: unknown[] = Array.isArray(value) ? value : [value];
  return element.length === width && element.every(isValid) ? (element as number[]) : null;
}

function isFiniteNumber(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value);
}
