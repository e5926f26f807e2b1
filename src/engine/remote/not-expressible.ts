// A field that the engine behind a replica has no word for.

export class NotExpressible extends Error {
  override name = "NotExpressible";

  /** `what`: the field, as the user knows it. */
  constructor(what: string) {
    super(what);
  }
}
