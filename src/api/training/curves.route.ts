// The curves of a model as columns, for charts.

import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import type { TrainingService } from "../../training/service.ts";
import { principalOf, readableBy } from "../http/auth.ts";
import { nullable, orNull } from "../request/schema-parts.ts";
import { documented } from "./training.schema.ts";
import { readQuery } from "./validation.ts";

const CurveFilter = Type.Object({
  x: orNull(Type.Enum(["gradient_step", "step"]), {
    default: "gradient_step",
    description: "One row per gradient step, or one per step of the model with all its metrics.",
  }),
  keys: orNull(Type.String(), { description: "Metrics to return, separated by commas. Default: all." }),
  after: orNull(Type.Integer(), { description: "`next` of the reply before: only rows after it." }),
});

const CurvesBody = Type.Object(
  {
    object: Type.Literal("curves"),
    keys: Type.Array(Type.String(), { description: "Of the columns." }),
    rows: Type.Integer(),
    columns: Type.Record(Type.String(), Type.Array(nullable(Type.Number())), {
      description: "`gradient_step` counts from the model's first; `step` is the step that it led to.",
    }),
    next: Type.Integer(),
    has_more: Type.Boolean({ description: "A reply has at most 5,000 rows." }),
    all_keys: Type.Array(Type.String()),
  },
  { title: "Curves" },
);

export function registerCurves(app: FastifyInstance, { models }: TrainingService): void {
  app.get<{ Params: { id: string } }>(
    "/v1/preview/models/:id/curves",
    documented("Metrics of a model over its training, as columns", { query: CurveFilter, response: CurvesBody }),
    async (request) => {
      const { x, keys, after } = readQuery(CurveFilter, request.query);
      const curves = await models.curves(request.params.id, readableBy(principalOf(request)), {
        x: x ?? "gradient_step",
        keys: keys ? keys.split(",") : null,
        after: after ?? -1,
      });
      const { rows, columns, next, hasMore, allKeys } = curves;
      return {
        ...{ object: "curves", keys: Object.keys(columns), rows, columns, next, has_more: hasMore },
        all_keys: allKeys,
      };
    },
  );
}
