// The wire form of a token matrix: rows of values over the positions of one sequence.

import { type Static, Type } from "typebox";
import { orNull } from "../../request/schema-parts.ts";

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

export type WireRow = Static<typeof RowBody>;
