// POST /invocations: the one route of SageMaker. The shape of the body says whether it is a chat or a text completion.
import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import { ServiceError } from "../errors/service-error.ts";
import { isJsonObject } from "../json/json.ts";
import { ChatReply } from "./chat/chat.response-schema.ts";
import { answerChat } from "./chat/chat.route.ts";
import { ChatRequest } from "./chat/chat.schema.ts";
import { answerCompletion } from "./completions/completions.route.ts";
import { CompletionReply, CompletionRequest } from "./completions/completions.schema.ts";
import { ErrorBody } from "./request/schema-parts.ts";
import type { Service } from "./service.ts";

export function registerInvocations(app: FastifyInstance, service: Service): void {
  app.post(
    "/invocations",
    {
      config: { access: "inference" },
      schema: {
        summary: "Chat or text completion, by the shape of the body",
        tags: ["inference"],
        body: Type.Union([ChatRequest, CompletionRequest]),
        response: { 200: Type.Union([ChatReply, CompletionReply]), 400: ErrorBody, 401: ErrorBody },
      },
    },
    (request, reply) => {
      const body = isJsonObject(request.body) ? request.body : {};
      if ("messages" in body) return answerChat(service, request, reply);
      if ("prompt" in body) return answerCompletion(service, request, reply);
      throw new ServiceError("invalid_value", "The body needs messages (a chat) or prompt (a text completion).");
    },
  );
}
