// The frame of every generation: a place in the queue and a model held for as long as the work lasts.
import type { FastifyRequest } from "fastify";
import { principalOf } from "../http/auth.ts";
import type { Service } from "../service.ts";
import type { ServedModel } from "./served-model.ts";

export async function admitted<T>(
  service: Service,
  request: FastifyRequest,
  wanted: { choices: number; model: string | null | undefined },
  work: (model: ServedModel) => Promise<T>,
): Promise<T> {
  // Before the work of rendering and tokenising: a full server refuses cheaply.
  const leave = service.admission.enter(wanted.choices);
  try {
    const model = await service.models.resolve(wanted.model, principalOf(request));
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
