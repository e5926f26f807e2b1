// POST /v1/chat/completions/batch: several conversations with the same settings, one choice for each. No streams, no tools,
// no n. Every conversation is checked and prepared before the first one runs.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { bodyWithPriority } from "../http/priority-header.ts";
import { checkLogprobAmount } from "../request/logprob-request.ts";
import { errorReplies } from "../request/schema-parts.ts";
import { answer, type PrepareContext, type PreparedAnswer } from "../run/answer.ts";
import type { Service } from "../service.ts";
import { chatRules } from "./chat.answer.ts";
import { type PreparedChat, prepareChat } from "./chat.prepare.ts";
import { ChatCollector, chatReplyJson } from "./chat.response.ts";
import { ChatReply } from "./chat.response-schema.ts";
import { BatchRequest } from "./chat.schema.ts";
import { type ValidatedChat, validateBatch } from "./chat.validate.ts";

export function registerChatBatch(app: FastifyInstance, service: Service): void {
  app.post(
    "/v1/chat/completions/batch",
    {
      config: { access: "inference" },
      schema: {
        summary: "Several chats with the same settings",
        tags: ["inference"],
        body: BatchRequest,
        response: { 200: ChatReply, ...errorReplies(400, 401, 404, 429) },
      },
    },
    (request, reply) => answerBatch(service, request, reply),
  );
}

function answerBatch(service: Service, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  return answer(service, request, reply, () => {
    const chats = validateBatch(bodyWithPriority(request), chatRules(service));
    const { body, ignored } = chats[0]!;
    return {
      ...{ body, ignored, choices: chats.length },
      prepare: (context) => prepareBatch(service, chats, context),
    };
  });
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
    const one = await prepareChat(service, chat, context);
    logprobs += one.logprobs;
    checkLogprobAmount(logprobs, "top_logprobs");
    prepared.push(one);
  }
  return {
    runs: prepared.map(({ run }) => run),
    logprobs,
    whole() {
      const collectors = prepared.map(({ facts, options }) => new ChatCollector(facts, options, 1));
      return {
        accept: (run, output) => collectors[run]!.accept(output),
        toJson: () => batchReply(prepared, collectors),
      };
    },
    streamed: () => {
      throw new Error("a batch cannot be streamed");
    },
  };
}

function batchReply(prepared: readonly PreparedChat[], collectors: readonly ChatCollector[]): string {
  const sum = (value: (collector: ChatCollector) => number) => collectors.reduce((all, one) => all + value(one), 0);
  const promptTokens = prepared.reduce((all, { facts }) => all + facts.promptTokens, 0);
  const counts = {
    completion: sum(({ counts }) => counts.completion),
    cached: sum(({ counts }) => counts.cached),
    reasoning: sum(({ counts }) => counts.reasoning),
  };
  const choices = collectors.map((collector, index) => collector.choicesJson(index)).join(",");
  const parts = { choices, promptLogprobs: null, kvTransferParams: null };
  return chatReplyJson({ ...prepared[0]!.facts, promptTokens }, counts, parts, null);
}
