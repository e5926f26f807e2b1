// POST /v1/chat/completions, in the dialect of OpenAI and vLLM.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { invalidValue } from "../../../errors/service-error.ts";
import { isJsonObject } from "../../../json/json.ts";
import { answer, type PrepareContext, type PreparedAnswer } from "../../generation/answer.ts";
import { checkLogprobAmount } from "../../generation/limits.ts";
import { bodyWithPriority } from "../../http/headers.ts";
import { route } from "../../route.ts";
import type { Service } from "../../service.ts";
import { CompletionChunk, CompletionReply, CompletionRequest } from "../completions/completions.schema.ts";
import { answerCompletion } from "../completions/completions.ts";
import { answerInDialect, chatRules, type Dialect, type PreparedChat, prepareChat } from "./chat.prepare.ts";
import { ChatReply, chatReplyJson } from "./chat.reply.ts";
import { BatchRequest, ChatChunk, ChatRequest, ChatReply as ReplySchema } from "./chat.schema.ts";
import { type ValidatedChat, validateBatch, validateChat } from "./chat.validate.ts";

export function registerChat(app: FastifyInstance, service: Service): void {
  app.post(
    "/v1/chat/completions",
    route("inference", "Chat completion", {
      description: "With stream: true the reply is text/event-stream: one chunk per event, ended by [DONE].",
      ...{ body: ChatRequest, reply: ReplySchema, chunk: ChatChunk },
    }),
    (request, reply) => answerChat(service, request, reply),
  );
}

function answerChat(service: Service, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const dialect: Dialect = {
    reply: ({ facts, options, run }) => new ChatReply(facts, options, run.choices.length),
  };
  return answerInDialect(service, request, reply, async () => ({
    chat: validateChat(bodyWithPriority(request), chatRules(service)),
    dialect,
  }));
}

// POST /v1/chat/completions/batch: several conversations with the same settings, one choice for each. No streams, no tools,
// no n. Every conversation is checked and prepared before the first one runs.

export function registerChatBatch(app: FastifyInstance, service: Service): void {
  app.post(
    "/v1/chat/completions/batch",
    route("inference", "Several chats with the same settings", { body: BatchRequest, reply: ReplySchema }),
    (request, reply) =>
      answer(service, request, reply, () => {
        const chats = validateBatch(bodyWithPriority(request), chatRules(service));
        const { body, ignored } = chats[0]!;
        return {
          ...{ body, ignored, choices: chats.length },
          prepare: (context) => prepareBatch(service, chats, context),
        };
      }),
  );
}

async function prepareBatch(
  service: Service,
  chats: readonly ValidatedChat[],
  context: PrepareContext,
): Promise<PreparedAnswer> {
  const prepared: PreparedChat[] = [];
  let logprobs = 0;
  for (const [index, chat] of chats.entries()) {
    if (index > 0) await service.turns.next();
    if (index > 0 && context.stopped.aborted) break; // nobody waits for the others
    const one = await prepareChat(service, chat, context);
    logprobs += one.logprobs;
    checkLogprobAmount(logprobs, "top_logprobs");
    prepared.push(one);
  }
  const replies = prepared.map(({ facts, options }) => new ChatReply(facts, options, 1));
  return {
    runs: prepared.map(({ run }) => run),
    logprobs,
    reply: {
      accept: (run, output) => replies[run]!.accept(run, output),
      toJson: () => batchJson(prepared, replies),
    },
  };
}

function batchJson(prepared: readonly PreparedChat[], replies: readonly ChatReply[]): string {
  const choices = replies.map((reply, index) => reply.choicesJson(index)).join(",");
  const sum = (value: (reply: ChatReply) => number) => replies.reduce((all, one) => all + value(one), 0);
  const promptTokens = prepared.reduce((all, { facts }) => all + facts.promptTokens, 0);
  const counts = {
    completion: sum(({ counts }) => counts.completion),
    cached: sum(({ counts }) => counts.cached),
    reasoning: sum(({ counts }) => counts.reasoning),
  };
  const parts = { choices, promptLogprobs: null, kvTransferParams: null };
  return chatReplyJson({ ...prepared[0]!.facts, promptTokens }, counts, parts, null);
}

// POST /invocations: the one route of SageMaker. The shape of the body says whether it is a chat or a text completion.
export function registerInvocations(app: FastifyInstance, service: Service): void {
  app.post(
    "/invocations",
    route("inference", "Chat or text completion, by the shape of the body", {
      body: Type.Union([ChatRequest, CompletionRequest]),
      reply: Type.Union([ReplySchema, CompletionReply]),
      chunk: Type.Union([ChatChunk, CompletionChunk]),
    }),
    (request, reply) => {
      const body = isJsonObject(request.body) ? request.body : {};
      if ("messages" in body) return answerChat(service, request, reply);
      if ("prompt" in body) return answerCompletion(service, request, reply);
      throw invalidValue("The body needs messages (a chat) or prompt (a text completion).");
    },
  );
}
