// Token sequences of a run, as rows.
import { type Static, Type } from "typebox";
import type { BaseModel } from "../../../training/base-models.ts";
import type { TokenMatrix } from "../../../training/contract.ts";
import type { LengthLimits } from "../../../training/data/token-sequence.ts";
import type { NamedLoss } from "../../../training/gradient/algorithms.ts";
import type { PassCommand } from "../../../training/runs/operation.ts";
import { orNull } from "../../schema/body.ts";
import type { Loc, Violations } from "../../schema/scalars.ts";
import { readTraining } from "../validation.ts";

// The wire form of a token matrix: rows of values over the positions of one sequence.

const Label = Type.String({ minLength: 1, maxLength: 255 });

const RowBody = Type.Object({
  name: Type.String({
    description: "token_ids, target_token_ids, loss_weights, advantages, behavior_logprobs or policy_version.",
  }),
  dtype: Type.Enum(["bool", "int32", "int64", "float32"]),
  shape: Type.Array(Type.Integer({ minimum: 1 }), { minItems: 1, description: "[tokens] or [tokens, targets]." }),
  values: Type.Object({
    encoding: Type.Enum(["dense", "spans"]),
    data: orNull(Type.Array(Type.Unknown()), { description: "dense: all values, row by row." }),
    default: Type.Optional(Type.Unknown({ description: "spans: the value (or values) of all other positions." })),
    spans: orNull(
      Type.Array(
        Type.Object({
          start: Type.Integer({ minimum: 0 }),
          end: Type.Integer({ minimum: 1 }),
          value: Type.Unknown(),
        }),
      ),
    ),
  }),
});

export const TokenMatrixBody = Type.Object(
  {
    kind: orNull(Type.Literal("matrix")),
    matrix_id: Label,
    rows: Type.Array(RowBody, { minItems: 1 }),
    packing_affinity_id: orNull(Label, { description: "Matrices that share it begin alike." }),
  },
  { title: "TokenMatrix" },
);

type WireRow = Static<typeof RowBody>;

// Expands the values of a row of a token matrix: dense ones as they are, spans over their positions.

interface DenseRow {
  dtype: WireRow["dtype"];
  shape: readonly number[];
  values: number[];
}

/** Values of one row, and targets of one batch. Spans could otherwise describe far more than they say. */
const MAX_VALUES = 2 ** 20;

/** A row with problems has no values. */
function denseRow({ dtype, shape, values }: WireRow, loc: Loc, issues: Violations): DenseRow {
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

// Reads token matrices one by one, as they arrive. The loss comes after them in the body, so its rules are checked in
// the end.

const ROWS = ["token_ids", "target_token_ids", "loss_weights", "advantages", "behavior_logprobs", "policy_version"];
const MAX_TARGETS = 256;

/** The rows that each loss needs besides the tokens, and those that it does not use. */
const LOSS_ROWS: Readonly<Record<NamedLoss["name"], { needed: readonly string[]; unused: readonly string[] }>> = {
  cross_entropy: { needed: ["loss_weights"], unused: ["advantages", "behavior_logprobs"] },
  importance_sampling: { needed: ["advantages", "behavior_logprobs"], unused: [] },
  cispo: { needed: ["advantages", "behavior_logprobs"], unused: [] },
};

/** What the rules of the loss look at. */
interface Seen {
  rows: ReadonlySet<string>;
  width: number;
  /** Whether a target has an advantage, or a weight, other than 0. */
  hasAdvantage: boolean;
  hasWeight: boolean;
}

export class TokenMatrixReader {
  readonly matrices: PassCommand["matrices"] = [];
  readonly #base: BaseModel;
  readonly #longest: number;
  readonly #seen: Seen[] = [];
  readonly #ids = new Set<string>();
  readonly #groups = new Map<string, number>();
  #values = 0;

  /** `limits`: those of the base model. */
  constructor(base: BaseModel, limits: LengthLimits) {
    this.#base = base;
    this.#longest = Math.min(limits.maxSequenceLength, limits.maxTrainedLength);
  }

  /** Returns undefined for a matrix with problems. */
  read(value: unknown, loc: Loc, issues: Violations): TokenMatrix | undefined {
    const matrix = readTraining(TokenMatrixBody, value, issues, loc);
    if (!matrix) return undefined;
    const { matrix_id: id, packing_affinity_id: affinity } = matrix;
    const rows = new Map<string, DenseRow>();
    for (const [i, row] of matrix.rows.entries()) {
      const at = [...loc, "rows", i];
      if (!ROWS.includes(row.name)) issues.add([...at, "name"], "value_error", `Value error, use ${ROWS.join(", ")}`);
      else if (rows.has(row.name)) issues.add([...at, "name"], "value_error", "Value error, the row is there twice");
      else rows.set(row.name, denseRow(row, at, issues));
    }
    if (this.#ids.has(id)) issues.add([...loc, "matrix_id"], "value_error", "Value error, the id is there twice");
    this.#ids.add(id);
    const tokens = rows.get("token_ids");
    const targets = rows.get("target_token_ids");
    if (!tokens || !targets) {
      issues.add([...loc, "rows"], "missing", "Value error, token_ids and target_token_ids are required");
      return undefined;
    }
    this.#checkShapes(rows, tokens, targets, loc, issues);
    if (issues.any) return undefined;
    const width = targets.shape[1]!;
    this.matrices.push({ id, shape: [tokens.values.length, width] });
    const [weights, advantages] = [rows.get("loss_weights"), rows.get("advantages")];
    this.#seen.push({
      ...{ rows: new Set(rows.keys()), width },
      hasAdvantage: advantages?.values.some(Boolean) ?? false,
      hasWeight: weights?.values.some(Boolean) ?? false,
    });
    return {
      ...{ id, group: this.#groupOf(affinity), ids: tokens.values, width, targets: targets.values },
      weights: weights?.values ?? null,
      advantages: advantages?.values ?? null,
      behaviorLogprobs: rows.get("behavior_logprobs")?.values ?? null,
      policyVersions: rows.get("policy_version")?.values ?? null,
    };
  }

  checkLoss({ name }: NamedLoss, issues: Violations): void {
    const { needed, unused } = LOSS_ROWS[name];
    if (this.matrices.length === 0) issues.add(["body", "batch", "matrices"], "too_short", "Send at least one matrix");
    for (const [i, { rows, width, hasAdvantage, hasWeight }] of this.#seen.entries()) {
      const fail = (problem: string) =>
        issues.add(["body", "batch", "matrices", i, "rows"], "value_error", `Value error, ${name} ${problem}`);
      for (const row of needed) if (!rows.has(row)) fail(`needs the row ${row}`);
      for (const row of unused) if (rows.has(row)) fail(`does not use the row ${row}`);
      if (name !== "cross_entropy" && width !== 1) fail("has one target per position");
      if (!(name === "cross_entropy" ? hasWeight : hasAdvantage)) fail("has nothing to train here: all values are 0");
    }
  }

  #checkShapes(
    rows: ReadonlyMap<string, DenseRow>,
    tokens: DenseRow,
    targets: DenseRow,
    loc: Loc,
    issues: Violations,
  ): void {
    const fail = (row: string, problem: string) =>
      issues.add([...loc, "rows"], "value_error", `Value error, ${row} ${problem}`);
    const [length, width] = targets.shape;
    const longest = this.#longest;
    const { engine } = this.#base;
    if (tokens.dtype !== "int64" || tokens.shape.length !== 1) fail("token_ids", "must be int64 of shape [tokens]");
    else if (tokens.values.length > longest) fail("token_ids", `has more than ${longest} tokens, too long to train`);
    if (targets.dtype !== "int64" || targets.shape.length !== 2 || width! > MAX_TARGETS) {
      fail("target_token_ids", `must be int64 with the shape [tokens, targets], with at most ${MAX_TARGETS} targets`);
    }
    const isToken = (id: number) => id >= 0 && id < engine.info.vocabSize;
    for (const [name, row] of rows) {
      if (row.shape[0] !== tokens.shape[0]) fail(name, "must have as many positions as token_ids");
      if (name.endsWith("token_ids")) {
        if (!row.values.every(isToken)) fail(name, `has an id outside the vocabulary of ${engine.info.vocabSize}`);
      } else if (name === "policy_version") {
        if (row.dtype !== "int64" || row.values.length !== length) fail(name, "must be int64, one per position");
      } else if (row.dtype !== "float32" || row.shape.join() !== targets.shape.join()) {
        fail(name, "must be float32 with the shape of target_token_ids");
      }
    }
    this.#values += targets.values.length;
    if (this.#values > MAX_VALUES) fail("target_token_ids", `brings the batch to more than ${MAX_VALUES} targets`);
  }

  #groupOf(affinity: string | null | undefined): number {
    if (affinity === null || affinity === undefined) return -1;
    const group = this.#groups.get(affinity) ?? this.#groups.size;
    this.#groups.set(affinity, group);
    return group;
  }
}
