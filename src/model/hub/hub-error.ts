// Thrown when neither the hub nor its cache can provide a model. The message says what was tried and what to do.

import { OperatorError } from "../../errors/faults.ts";

export class HubError extends OperatorError {
  override name = "HubError";
}
