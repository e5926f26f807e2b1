// Reads token matrices one by one, as they arrive. The loss comes after them in the body, so its rules are checked in
// the end.

import type { BaseModel } from "../../../training/base-models.ts";
import type { TokenMatrix } from "../../../training/contract.ts";
import type { LengthLimits } from "../../../training/data/length-limits.ts";
import type { NamedLoss } from "../../../training/gradient/named-loss.ts";
import type { PassCommand } from "../../../training/runs/operation.ts";
import type { Loc, Violations } from "../../request/violations.ts";
import { readTraining } from "../validation.ts";
import { TokenMatrixBody } from "./token-matrix.schema.ts";
import { type DenseRow, denseRow, MAX_VALUES } from "./token-row.wire.ts";

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
