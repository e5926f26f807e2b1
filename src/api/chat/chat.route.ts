// POST /v1/chat/completions, in the dialect of OpenAI and vLLM.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { bodyWithPriority } from "../http/priority-header.ts";
import { errorReplies } from "../request/schema-parts.ts";
import type { Service } from "../service.ts";
import { answerInDialect, type ChatDialect, chatRules } from "./chat.answer.ts";
import { ChatCollector } from "./chat.response.ts";
import { ChatChunk, ChatReply } from "./chat.response-schema.ts";
import { ChatRequest } from "./chat.schema.ts";
import { ChatChunks } from "./chat.stream.ts";
import { validateChat } from "./chat.validate.ts";

export function registerChat(app: FastifyInstance, service: Service): void {
  app.post(
    "/v1/chat/completions",
    {
      config: { access: "inference" },
      schema: {
        summary: "Chat completion",
        description: "With stream: true the reply is text/event-stream: one chunk per event, ended by [DONE].",
        tags: ["inference"],
        body: ChatRequest,
        response: {
          200: {
            description: "The choices",
            content: { "application/json": { schema: ChatReply }, "text/event-stream": { schema: ChatChunk } },
          },
          ...errorReplies(400, 401, 404, 429),
        },
      },
    },
    (request, reply) => answerChat(service, request, reply),
  );
}

export function answerChat(service: Service, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const dialect: ChatDialect = {
    whole({ facts, options }, n) {
      const collector = new ChatCollector(facts, options, n);
      return {
        accept: (_run, output) => collector.accept(output),
        toJson: () => collector.toJson(service.text.tokenizer),
      };
    },
    streamed: ({ facts, options }, n) => new ChatChunks(facts, options, n),
  };
  return answerInDialect(service, request, reply, async () => ({
    chat: validateChat(bodyWithPriority(request), chatRules(service)),
    dialect,
  }));
}
