// None of several engines is ready. It helps to try again.

export class EngineUnavailable extends Error {
  override name = "EngineUnavailable";
}
