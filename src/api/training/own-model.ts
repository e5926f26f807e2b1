// Only a workspace itself trains its models. An admin sees those of all workspaces, and may cancel and delete.

import { ServiceError } from "../../errors/service-error.ts";
import type { ModelRecord } from "../../store/tables/models.ts";
import type { TrainingService } from "../../training/service.ts";
import { type Principal, readableBy } from "../http/auth.ts";

/** A model of the caller's workspace; 404 if the caller cannot see it, 403 for an admin of another workspace. */
export async function ownModel(training: TrainingService, id: string, principal: Principal): Promise<ModelRecord> {
  const model = await training.models.owned(id, readableBy(principal));
  if (model.owner === principal.workspace.id) return model;
  const message = "The model belongs to another workspace, and only tokens of that workspace can train it.";
  throw new ServiceError("other_workspace", message);
}
