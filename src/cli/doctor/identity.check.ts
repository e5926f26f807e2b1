// Finds out what answers at a URL: whether it lives, speaks vLLM's dialect with token ids, and which model it serves.
// Without these facts no other check makes sense.

import { isJsonObject, type JsonObject } from "../../json/json.ts";
import type { ServedModel } from "./bench.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";
import { errorText, type Replica, ReplicaError } from "./replica.ts";

export interface Identity {
  findings: Finding[];
  /** null when the other checks cannot run. */
  served: ServedModel | null;
}

/** The first vLLM release whose dialect the remote engine speaks: [minor, patch] after "0.". */
const OLDEST_MINOR = 17;
const FOREIGN =
  "Flywheel sends token ids and needs token ids back. Point it at vLLM 0.17 or newer, or at another Flywheel server.";

/** `ours` is our context length. */
export async function identify(replica: Replica, ours: number): Promise<Identity> {
  const health = await replica.get("/health");
  if (health.status !== 200) {
    const advice = "Wait until the replica has loaded its model, and look at its log.";
    return { findings: [wrong("health", `/health answers ${health.status}`, advice)], served: null };
  }
  const findings: Finding[] = [];
  const models = await replica.get("/v1/models");
  if (models.status === 401 || models.status === 403) {
    const advice = "Give the replica's key with --engine-api-key.";
    return { findings: [wrong("api-key", `/v1/models answers ${models.status}`, advice)], served: null };
  }
  const served = baseModel(models.body);
  if (served === null) {
    return { findings: [wrong("models", `/v1/models lists no model: ${errorText(models.body)}`, FOREIGN)], served };
  }
  findings.push(await versionFinding(replica, served.isFlywheel), contextFinding(served, ours));
  const dialect = await dialectFinding(replica, served);
  findings.push(dialect);
  return { findings, served: dialect.status === "wrong" ? null : served };
}

/** The first model without a parent; adapters have one. */
function baseModel(body: unknown): ServedModel | null {
  const list = isJsonObject(body) && Array.isArray(body.data) ? body.data : [];
  const base = list.find((model): model is JsonObject => isJsonObject(model) && (model.parent ?? null) === null);
  if (base === undefined || typeof base.id !== "string") return null;
  const { id, max_model_len: length, owned_by: owner } = base;
  return { name: id, maxModelLen: typeof length === "number" ? length : 0, isFlywheel: owner === "flywheel" };
}

async function versionFinding(replica: Replica, isFlywheel: boolean): Promise<Finding> {
  const { body } = await replica.get("/version");
  const version = isJsonObject(body) && typeof body.version === "string" ? body.version : null;
  if (version === null) return warning("version", "/version tells no version", FOREIGN);
  if (isFlywheel) return ok("version", `Flywheel ${version}`);
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  // Development builds of vLLM call themselves "dev".
  if (major === undefined) return warning("version", `vLLM ${version}`, "Use a released version: 0.17 or newer.");
  if (Number(major) === 0 && Number(minor) < OLDEST_MINOR) {
    return wrong("version", `vLLM ${version}`, "Update vLLM: 0.17 is the oldest version that Flywheel speaks to.");
  }
  return ok("version", `vLLM ${version}`);
}

function contextFinding({ name, maxModelLen }: ServedModel, ours: number): Finding {
  const detail = `${name}, ${maxModelLen} tokens`;
  if (maxModelLen >= ours) return ok("model", detail);
  const advice = `Requests get the smaller length. The replica's --max-model-len ${ours} would allow all.`;
  return warning("model", `${detail}; the model allows ${ours}`, advice);
}

async function dialectFinding(replica: Replica, { name }: ServedModel): Promise<Finding> {
  const prompt = [1, 2, 3];
  try {
    const { tokenIds } = await replica.complete(name, prompt, { max_tokens: 2 });
    return ok("token-ids", `prompts and replies are token ids: ${JSON.stringify(tokenIds)}`);
  } catch (error) {
    if (!(error instanceof ReplicaError)) throw error;
    return wrong("token-ids", `/v1/completions with token ids: ${error.message}`, FOREIGN);
  }
}
