// GET /v1/models and /v1/models/{id}: the names that a request may give as `model`.

import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import { ServiceError } from "../../errors/service-error.ts";
import { principalOf } from "../http/auth.ts";
import { route } from "../route.ts";
import { nullable, orNull, readBody } from "../schema/body.ts";
import { wholeListOf } from "../schema/list.ts";
import type { Service } from "../service.ts";
import type { ModelCard } from "./model-registry.ts";

const Permission = Type.Object({
  id: Type.String(),
  object: Type.Literal("model_permission"),
  created: Type.Integer(),
  allow_create_engine: Type.Boolean(),
  allow_sampling: Type.Boolean(),
  allow_logprobs: Type.Boolean(),
  allow_search_indices: Type.Boolean(),
  allow_view: Type.Boolean(),
  allow_fine_tuning: Type.Boolean(),
  organization: Type.String(),
  group: nullable(Type.String()),
  is_blocking: Type.Boolean(),
});

const Model = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal("model"),
    created: Type.Integer(),
    owned_by: Type.String(),
    root: Type.String(),
    parent: Type.Union([Type.String(), Type.Null()], { description: "The base model of an adapter." }),
    max_model_len: Type.Integer({ description: "Context length in tokens." }),
    permission: Type.Array(Permission),
  },
  { title: "Model" },
);

const ModelList = wholeListOf(Model, "ModelList");

export function registerModels(app: FastifyInstance, service: Service): void {
  const { maxModelLen } = service.engine.info;
  app.get("/v1/models", route("any", "List served models", { reply: ModelList }), async (request) => {
    const cards = await service.models.cards(principalOf(request));
    return { object: "list", data: cards.map((card) => toWire(card, maxModelLen)) };
  });

  app.get<{ Params: { "*": string } }>(
    "/v1/models/*",
    route("any", "One served model", { reply: Model, errors: [400] }),
    async (request) => {
      // A wildcard, because names may contain slashes.
      const name = request.params["*"];
      const card = await service.models.card(name, principalOf(request));
      if (card !== null) return toWire(card, maxModelLen);
      throw new ServiceError("model_not_found", `The model \`${name}\` does not exist.`, { param: "model" });
    },
  );
}

function toWire(card: ModelCard, maxModelLen: number) {
  return {
    id: card.id,
    object: "model",
    created: card.created,
    owned_by: "flywheel",
    root: card.root,
    parent: card.parent,
    max_model_len: maxModelLen,
    permission: [
      {
        id: `modelperm-${card.id}`,
        object: "model_permission",
        created: card.created,
        allow_create_engine: false,
        allow_sampling: true,
        allow_logprobs: true,
        allow_search_indices: false,
        allow_view: true,
        allow_fine_tuning: false,
        organization: "*",
        group: null,
        is_blocking: false,
      },
    ],
  };
}

// Loads and unloads adapters at run time. Paths are on the server's machine, so only admins may do it.

const LoadRequest = Type.Object(
  {
    lora_name: Type.Optional(Type.String({ description: "Name to serve it under." })),
    lora_path: Type.Optional(
      Type.String({ description: "Folder with adapter_config.json and adapter_model.safetensors." }),
    ),
    load_inplace: orNull(Type.Boolean(), { default: false, description: "Replace an adapter of the same name." }),
  },
  { title: "LoadAdapterRequest" },
);

const UnloadRequest = Type.Object({ lora_name: Type.Optional(Type.String()) }, { title: "UnloadAdapterRequest" });

const answered = { reply: Type.String(), type: "text/plain", errors: [404] };

export function registerLora(app: FastifyInstance, service: Service): void {
  app.post(
    "/v1/load_lora_adapter",
    route("admin", "Load an adapter and serve it under a name", { body: LoadRequest, ...answered }),
    async (request, reply) => {
      const { value } = readBody(LoadRequest, request.body ?? null);
      requireLora(service);
      const adapter = {
        name: value.lora_name ?? "",
        path: value.lora_path ?? "",
        inPlace: value.load_inplace === true,
      };
      const info = await service.adapters.load(adapter);
      service.log.info("adapter loaded", { name: adapter.name, version: info.version, rank: info.rank });
      return reply.type("text/plain").send(`Success: LoRA adapter '${adapter.name}' added successfully.`);
    },
  );
  app.post(
    "/v1/unload_lora_adapter",
    route("admin", "Stop serving an adapter", { body: UnloadRequest, ...answered }),
    async (request, reply) => {
      const { value } = readBody(UnloadRequest, request.body ?? null);
      requireLora(service);
      await service.adapters.unload(value.lora_name ?? "");
      service.log.info("adapter unloaded", { name: value.lora_name });
      return reply.type("text/plain").send(`Success: LoRA adapter '${value.lora_name}' removed successfully.`);
    },
  );
}

function requireLora(service: Service): void {
  if (!service.config.enableLora) {
    throw new ServiceError("not_supported", "This server was started with --no-enable-lora.");
  }
}
