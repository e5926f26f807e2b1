// POST /v1/messages and /v1/messages/count_tokens, Anthropic's Messages API.
import { randomUUID } from "node:crypto";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { chatPrompt } from "../../../text/prompt.ts";
import { principalOf } from "../../http/auth.ts";
import { asClientErrors, renameParams } from "../../http/errors.ts";
import { bodyWithPriority } from "../../http/headers.ts";
import { type RouteShape, route } from "../../route.ts";
import { readBody } from "../../schema/body.ts";
import type { Service } from "../../service.ts";
import { answerInDialect, chatRules, type Dialect, templateInput } from "../chat/chat.prepare.ts";
import { translatedChat } from "../chat/chat.validate.ts";
import { replyParsing } from "../chat/reply-parsing.ts";
import { MessageReply } from "./messages.reply.ts";
import {
  CountTokensRequest,
  MessageEvent,
  MessagesError,
  MessagesRequest,
  MessageReply as ReplySchema,
  TokenCount,
} from "./messages.schema.ts";
import { chatOf, FIELD_NAMES, promptOf } from "./messages.translate.ts";

function anthropic(...[summary, description]: [string, RouteShape]) {
  const { config } = route("inference", summary, { ...description, errorBody: MessagesError });
  return { config: { ...config, errors: "messages" as const } };
}

export function registerMessages(app: FastifyInstance, service: Service): void {
  app.post(
    "/v1/messages",
    anthropic("A message", {
      description: "Anthropic's Messages API. With stream: true the reply is text/event-stream.",
      ...{ body: MessagesRequest, reply: ReplySchema, chunk: MessageEvent },
    }),
    (request, reply) =>
      renameParams(FIELD_NAMES, () =>
        answerInDialect(service, request, reply, async () => {
          const { value: body, ignored } = readBody(MessagesRequest, bodyWithPriority(request) ?? null);
          const chat = translatedChat(chatOf(body, service.reasoning !== null), chatRules(service), { ignored });
          return { chat, dialect };
        }),
      ),
  );
  app.post(
    "/v1/messages/count_tokens",
    anthropic("How many tokens a message's prompt has", { body: CountTokensRequest, reply: TokenCount }),
    (request) => renameParams(FIELD_NAMES, () => countTokens(service, request)),
  );
}

const dialect: Dialect = {
  reply({ facts: { model, promptTokens }, options: { policyVersion, parallelToolCalls } }, streams) {
    const key = randomUUID().replaceAll("-", "");
    return new MessageReply({ key, model, promptTokens, parallelToolCalls, policyVersion }, streams);
  },
};

/** As many as the prompt of POST /v1/messages has. Prompts that are too long for the model are counted too. */
async function countTokens(service: Service, request: FastifyRequest): Promise<{ input_tokens: number }> {
  const { value: body } = readBody(CountTokensRequest, request.body ?? null);
  const { id } = principalOf(request);
  const chat = translatedChat(promptOf(body, service.reasoning !== null), chatRules(service), { ignored: [] });
  const model = await service.models.resolve(chat.body.model, principalOf(request));
  model.release();
  await service.turns.next();
  const { tokenIds } = await asClientErrors(() =>
    chatPrompt(service.text, templateInput(service, chat.body, replyParsing(service, chat), id), null),
  );
  return { input_tokens: tokenIds.length };
}
