// Runs a generation with a place in the queue and its model held until the work is done.
import type { FastifyRequest } from "fastify";
import { principalOf } from "../http/auth.ts";
import { connectionLost } from "../http/client-gone.ts";
import type { Service } from "../service.ts";
import type { ServedModel } from "./served-model.ts";

export async function admitted<T>(
  service: Service,
  request: FastifyRequest,
  wanted: { choices: number; model: string | null | undefined },
  work: (model: ServedModel) => Promise<T>,
): Promise<T> {
  // First of all, because a full server should refuse before it renders and tokenises.
  const leave = service.admission.enter(wanted.choices);
  try {
    const model = await service.models.resolve(wanted.model, principalOf(request), () => connectionLost(request.raw));
    try {
      await service.turns.next();
      return await work(model);
    } finally {
      model.release();
    }
  } finally {
    leave();
  }
}
