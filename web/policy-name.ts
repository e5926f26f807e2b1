// Trained policies by the names that requests use: NAME, NAME@3, NAME:step3, and the full name with the same endings.
import type { TrainableModel } from "../src/client/types.ts";

export interface PolicyName {
  policy: TrainableModel;
  /** Null: the newest. */
  step: number | null;
}

/** What a model's name stands for; null if it is no policy. */
export function policyNamed(name: string, policies: readonly TrainableModel[]): PolicyName | null {
  const [, plain, step] = /^(.*?)(?:(?:@|:step)(\d+))?$/s.exec(name)!;
  const policy = policies.find((one) => one.name === plain || one.inference_name === plain);
  return policy === undefined ? null : { policy, step: step === undefined ? null : Number(step) };
}
