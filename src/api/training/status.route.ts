// Probes and the list of trainable models. They need no authentication, as clients expect.

import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import type { TrainingService } from "../../training/service.ts";
import { documented } from "./training.schema.ts";

export function registerTrainingStatus(app: FastifyInstance, training: TrainingService): void {
  app.get(
    "/v1/preview/base-models",
    documented("Models that can be trained", { response: Type.Array(Type.String()) }, "public"),
    async () => training.bases.names(),
  );

  app.get("/v1/health", documented("Whether the server answers", {}, "public"), async () => ({ status: "ok" }));

  app.get(
    "/v1/system-check",
    documented("Whether every part works; 503 when one does not", {}, "public"),
    async (_request, reply) => {
      const database = await timed(() => training.checkDatabase());
      const trainer = await timed(() => training.checkTrainer());
      const engine = await timed(() => training.checkEngines());
      if (!database.success || !trainer.success || !engine.success) reply.code(503);
      // clients of the hosted service know these names; work is queued for this machine's cores
      return { api: true, database, cpu_queue: trainer, gpu_queue: engine };
    },
  );
}

async function timed(check: () => void | Promise<void>) {
  const start = performance.now();
  const errors: string[] = [];
  try {
    await check();
  } catch (error) {
    errors.push((error as Error).message);
  }
  return { success: errors.length === 0, duration: (performance.now() - start) / 1000, errors };
}
