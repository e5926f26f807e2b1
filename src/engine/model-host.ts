// What a model module gives the engine thread. The module named by the worker's start message exports `createRunner`;
// the ONNX runner and the fakes of the tests use the same entry.

import type { ConstraintFactory } from "../grammar/match/sequence-constraint.ts";
import type { AdapterHost } from "../model/lora/adapter-host.ts";
import type { Runner } from "../model/runner.ts";

export interface ModelHost {
  runner: Runner;
  adapters?: AdapterHost;
  constraints?: ConstraintFactory;
  /** Frees native memory and files; called once, after the last step. */
  close?(): Promise<void>;
}

/** The export a model module must have. `options` went through structured clone. `adaptersToCome`: some follow at once. */
export type CreateRunner = (options: unknown, adaptersToCome: boolean) => Promise<ModelHost>;
