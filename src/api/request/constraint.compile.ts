// Compiles a constraint before the engine sees it. A constraint that does not compile is a client error.
import type { GenerateRequest } from "../../engine/contract.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { type Constraint, ConstraintError, LateConstraintError } from "../../grammar/constraint.ts";
import { type GrammarService, QueueFullError } from "../../grammar/grammar-service.ts";

const NONE = { grammar: null, constraint: null };

/** What the engine gets for a constraint: its source and the grammar's key. */
export type CompiledConstraint = Pick<GenerateRequest, "grammar" | "constraint">;

/** Both null without a constraint, or once the client left or the server stopped. */
export async function grammarFor(
  { grammars, cutSignal }: { grammars: Pick<GrammarService, "compile">; cutSignal: AbortSignal },
  constraint: Constraint | null,
  { client, stopped }: { client: { id: string }; stopped: AbortSignal },
): Promise<CompiledConstraint> {
  if (constraint === null) return NONE;
  try {
    const compiled = await grammars.compile(constraint, client.id, [stopped, cutSignal]);
    if (compiled === null) return NONE;
    const { shape, reasoning } = constraint;
    return { grammar: compiled.key, constraint: { shape, reasoning } };
  } catch (error) {
    if (error instanceof QueueFullError) {
      throw new ServiceError("constraint_queue_full", error.message, { retryAfter: 1 });
    }
    if (error instanceof LateConstraintError) {
      throw new ServiceError("constraint_timeout", error.message, { param: error.param, retryAfter: 1 });
    }
    if (error instanceof ConstraintError) {
      throw new ServiceError("invalid_constraint", error.message, { param: error.param, cause: error });
    }
    throw error;
  }
}
