// Compiles a constraint before the engine sees it; what cannot be compiled is the client's mistake.
import { ServiceError } from "../../errors/service-error.ts";
import { type Constraint, ConstraintError } from "../../grammar/constraint.ts";
import type { Service } from "../service.ts";

/** The key that goes to the engine; null too when the run is not to begin, because its client or the server has gone. */
export async function grammarKeyFor(
  service: Service,
  constraint: Constraint | null,
  clientGone: AbortSignal,
): Promise<string | null> {
  if (constraint === null) return null;
  try {
    return (await service.grammars.compile(constraint, [clientGone, service.cutSignal]))?.key ?? null;
  } catch (error) {
    if (error instanceof ConstraintError) {
      throw new ServiceError("invalid_constraint", error.message, { param: error.param, cause: error });
    }
    throw error;
  }
}
