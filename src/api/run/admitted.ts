// Runs a generation with a place in the queue and its model held until the work is done.
import type { FastifyRequest } from "fastify";
import { principalOf } from "../http/auth.ts";
import { connectionLost } from "../http/client-gone.ts";
import type { Service } from "../service.ts";
import type { LiveRequest } from "./live-requests.ts";
import type { ServedModel } from "./served-model.ts";

export async function admitted<T>(
  service: Service,
  request: FastifyRequest,
  wanted: { choices: number; model: string | null | undefined },
  work: (model: ServedModel, live: LiveRequest) => Promise<T>,
): Promise<T> {
  // First of all, because a full server should refuse before it renders and tokenises.
  const leave = service.admission.enter(wanted.choices);
  const caller = principalOf(request);
  const live = service.live.enter(request.id, caller, wanted.choices);
  try {
    const model = await service.models.resolve(wanted.model, caller, () => connectionLost(request.raw));
    try {
      service.live.runsOn(live, model);
      await service.turns.next();
      return await work(model, live);
    } finally {
      model.release();
    }
  } finally {
    service.live.leave(live);
    leave();
  }
}
