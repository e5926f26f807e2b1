// What a model module gives the engine thread. The worker's start message names the module, which exports
// `createRunner`. The ONNX runner and the tests' fakes use the same entry.

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

/** The export of a model module. `options` went through structured clone. `adaptersToCome`: adapters follow at once. */
export type CreateRunner = (options: unknown, adaptersToCome: boolean) => Promise<ModelHost>;
