// Compiles a constraint before the engine sees it. One that does not compile is the client's mistake.
import { ServiceError } from "../../errors/service-error.ts";
import { type Constraint, ConstraintError } from "../../grammar/constraint.ts";
import type { GrammarService } from "../../grammar/grammar-service.ts";

/** The key that goes to the engine. null without a constraint, and if the client or the server has gone meanwhile. */
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
