// Probes and the list of trainable models. They need no authentication, as clients expect.

import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import { toServiceError } from "../../errors/service-error.ts";
import { ALIVE_MS, type SeenServer } from "../../store/tables/servers.ts";
import type { TrainingService } from "../../training/service.ts";
import { isAdmin, type Principal, principalOf, readableBy } from "../http/auth.ts";
import { route } from "../route.ts";
import { presentReplicas, type Service } from "../service.ts";
import { ServerList } from "./training.schema.ts";

const Healthy = Type.Object({ status: Type.Literal("ok") });
const Checked = Type.Object({ success: Type.Boolean(), duration: Type.Number(), errors: Type.Array(Type.String()) });
const SystemCheck = Type.Object(
  {
    ...{ api: Type.Literal(true), database: Checked, cpu_queue: Checked, gpu_queue: Checked },
    servers: Type.Array(Type.Object({ role: Type.String(), version: Type.String(), alive: Type.Boolean() })),
  },
  { title: "SystemCheck" },
);

export function registerTrainingStatus(app: FastifyInstance, { log }: Service, training: TrainingService): void {
  /** Everybody reads the answer, so it has no text of an exception; the log does. */
  const timed = async (part: string, check: () => void | Promise<void>) => {
    const start = performance.now();
    const errors: string[] = [];
    try {
      await check();
    } catch (error) {
      log.warn("a check of the system failed", { part, error });
      errors.push(toServiceError(error).message);
    }
    return { success: errors.length === 0, duration: (performance.now() - start) / 1000, errors };
  };

  app.get(
    "/v1/preview/base-models",
    route("public", "Models that can be trained", { reply: Type.Array(Type.String()) }),
    async () => training.bases.names(),
  );

  app.get("/v1/health", route("public", "Whether the server answers", { reply: Healthy }), async () => ({
    status: "ok",
  }));

  app.get(
    "/v1/system-check",
    route("public", "Whether every part works; 503 when one does not", { reply: SystemCheck }),
    async (_request, reply) => {
      const database = await timed("database", () => training.checkDatabase());
      const trainer = await timed("trainer", () => training.checkTrainer());
      const engine = await timed("engines", () => training.checkEngines());
      if (!database.success || !trainer.success || !engine.success) reply.code(503);
      // clients of the hosted service know these names; work is queued for this machine's cores
      const servers = database.success ? await training.servers() : [];
      return { api: true, database, cpu_queue: trainer, gpu_queue: engine, servers: servers.map(inPublic) };
    },
  );

  app.get(
    "/v1/preview/servers",
    route(
      "training",
      "The servers of this deployment, with their engines and those of their running jobs that the caller sees",
      { reply: ServerList },
    ),
    async (request) => {
      const caller = principalOf(request);
      return { object: "list", data: (await training.servers()).map((server) => present(server, caller)) };
    },
  );
}

/** Without addresses: everybody may read it. */
function inPublic({ role, version, silentMs }: SeenServer) {
  return { role, version, alive: silentMs < ALIVE_MS };
}

function present(server: SeenServer, caller: Principal) {
  const { id, address, silentMs, facts, running } = server;
  const owner = readableBy(caller);
  return {
    ...{ id, ...inPublic(server), address, silent_seconds: Math.max(0, silentMs) / 1000 },
    models: facts.models,
    replicas: presentReplicas(facts.replicas, isAdmin(caller)),
    running_jobs: running
      .filter((job) => owner === null || job.owner === owner)
      .map(({ id, modelId, kind, progress }) => ({ id, model_id: modelId, kind, progress })),
  };
}
