// Compiles a constraint before the engine sees it. A constraint that does not compile is a client error.
import { ServiceError } from "../../errors/service-error.ts";
import { type Constraint, ConstraintError } from "../../grammar/constraint.ts";
import type { GrammarService } from "../../grammar/grammar-service.ts";

/** The grammar's key for the engine; null without a constraint, or once the client left or the server stopped. */
export async function grammarKeyFor(
  { grammars, cutSignal }: { grammars: Pick<GrammarService, "compile">; cutSignal: AbortSignal },
  constraint: Constraint | null,
  clientGone: AbortSignal,
): Promise<string | null> {
  if (constraint === null) return null;
  try {
    return (await grammars.compile(constraint, [clientGone, cutSignal]))?.key ?? null;
  } catch (error) {
    if (error instanceof ConstraintError) {
      throw new ServiceError("invalid_constraint", error.message, { param: error.param, cause: error });
    }
    throw error;
  }
}
