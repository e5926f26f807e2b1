// Trained policies among the served models: their names, and what a request to one of them gets.

import { artifactName } from "../../training/policies.ts";
import type { TrainingService } from "../../training/service.ts";
import type { ModelSource } from "../models/model-registry.ts";

export function policySource(training: TrainingService): ModelSource {
  return {
    async resolve(name, principal) {
      const lease = await training.policies.acquire(name, principal.id);
      if (!lease) return null;
      const { model, step, adapter } = lease;
      const full = artifactName(model);
      const plain = name.startsWith(full) ? full : model.name;
      return {
        name: `${plain}:step${step}`,
        adapter,
        recordsForTraining: true,
        policyVersion: step,
        release: lease.release,
      };
    },
    claims: (name) => training.policies.claims(name),
    list(principal) {
      const all = training.models.list(principal.id, {}, null, Number.MAX_SAFE_INTEGER);
      const answering = all.filter((model) => training.policies.answers(model));
      return answering.map((model) => ({
        id: model.name,
        created: Math.floor(Date.parse(model.createdAt) / 1000),
        root: artifactName(model),
        parent: model.baseModel,
        maxModelLen: null,
      }));
    },
  };
}
