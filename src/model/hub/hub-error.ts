// A model that neither the hub nor its cache can provide. The message says what was tried and what to do.

import { OperatorError } from "../../errors/operator-error.ts";

export class HubError extends OperatorError {
  override name = "HubError";
}
