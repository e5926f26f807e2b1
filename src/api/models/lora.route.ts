// Loads and unloads adapters at run time. Paths are on the server's machine, so only admins may do it.
import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import { ServiceError } from "../../errors/service-error.ts";
import { readBody } from "../request/read-body.ts";
import { ErrorBody, orNull } from "../request/schema-parts.ts";
import type { Service } from "../service.ts";

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

const common = {
  tags: ["adapters"],
  produces: ["text/plain"],
  response: { 200: Type.String(), 400: ErrorBody, 404: ErrorBody },
};

export function registerLora(app: FastifyInstance, service: Service): void {
  app.post(
    "/v1/load_lora_adapter",
    {
      config: { access: "admin" },
      schema: {
        ...common,
        response: { ...common.response, 503: ErrorBody },
        summary: "Load an adapter and serve it under a name",
        body: LoadRequest,
      },
    },
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
    {
      config: { access: "admin" },
      schema: { ...common, summary: "Stop serving an adapter", body: UnloadRequest },
    },
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
