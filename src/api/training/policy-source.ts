// Trained policies as served models: their names, and how requests to them are served.

import type { ModelRecord } from "../../store/tables/models.ts";
import { artifactName } from "../../training/policies.ts";
import type { TrainingService } from "../../training/service.ts";
import { isAdmin, readableBy } from "../http/auth.ts";
import type { ModelCard, ModelSource } from "../models/model-registry.ts";
import { fromPolicy } from "./routes.ts";

export function policySource(training: TrainingService): ModelSource {
  return {
    async resolve(name, principal, gone) {
      const lease = await training.policies
        .acquire(name, principal.workspace.id, gone, isAdmin(principal))
        .catch((error: unknown) => {
          throw fromPolicy(error);
        });
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
    // A short name means the newest policy with that name. The others need their full names. To an admin, names mean
    // policies of the own workspace first; one of another workspace that has no name left is not listed.
    async list(principal) {
      const all = await training.models.list(readableBy(principal), {}, null, Number.MAX_SAFE_INTEGER);
      const isOwn = ({ owner }: ModelRecord) => owner === principal.workspace.id;
      const byRank = [...all.filter((model) => !isOwn(model)), ...all.filter(isOwn)];
      const named = new Map(byRank.flatMap((model) => [[artifactName(model), model] as const, [model.name, model]]));
      const cards: ModelCard[] = [];
      for (const model of all) {
        const name = [model.name, artifactName(model)].find((name) => named.get(name) === model);
        if (name !== undefined && (await training.policies.answers(model))) cards.push(cardOf(model, name));
      }
      return cards;
    },
    async card(name, principal) {
      const found = await training.policies.find(name, principal.workspace.id, isAdmin(principal));
      return found && (await training.policies.answers(found.model, found.step)) ? cardOf(found.model, name) : null;
    },
  };
}

function cardOf(model: ModelRecord, id: string): ModelCard {
  const created = Math.floor(Date.parse(model.createdAt) / 1000);
  return { id, created, root: artifactName(model), parent: model.baseModel };
}
