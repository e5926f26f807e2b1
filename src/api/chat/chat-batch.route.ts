// POST /v1/chat/completions/batch: several conversations with the same settings, one choice for each. No streams, no tools,
// no n. Every conversation is checked and prepared before the first one runs.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { principalOf } from "../http/auth.ts";
import { clientGone } from "../http/client-gone.ts";
import { bodyWithPriority } from "../http/priority-header.ts";
import { requestIdOf } from "../http/request-id.ts";
import { checkLogprobAmount } from "../request/logprob-request.ts";
import { refusing } from "../request/prompt-errors.ts";
import { errorReplies } from "../request/schema-parts.ts";
import { admitted } from "../run/admitted.ts";
import { collectRuns } from "../run/collect-runs.ts";
import { GenerationRun } from "../run/generation-run.ts";
import type { Service } from "../service.ts";
import { chatRules } from "./chat.answer.ts";
import { type PreparedChat, prepareChat } from "./chat.prepare.ts";
import { ChatCollector, chatReplyJson } from "./chat.response.ts";
import { ChatReply } from "./chat.response-schema.ts";
import { BatchRequest } from "./chat.schema.ts";
import { validateBatch } from "./chat.validate.ts";

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

async function answerBatch(service: Service, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const arrivedAt = performance.now();
  const gone = clientGone(reply.raw);
  const client = { id: principalOf(request).id, gone };
  const chats = validateBatch(bodyWithPriority(request), chatRules(service));
  const { body, ignored } = chats[0]!;
  service.logIgnored(request, ignored, body);
  service.assertServing();
  const requestId = requestIdOf(request, reply, body.request_id);
  return admitted(service, request, { choices: chats.length, model: body.model }, async (model, live) => {
    const prepared: PreparedChat[] = [];
    let amount = 0;
    for (const [index, chat] of chats.entries()) {
      if (index > 0) await service.turns.next();
      const one = await refusing(() => prepareChat(service, chat, model, requestId, client));
      amount += one.logprobAmount;
      checkLogprobAmount(amount, "top_logprobs");
      prepared.push(one);
    }
    const runs = prepared.map(({ run }) => new GenerationRun(service, { ...run, arrivedAt, clientGone: gone, live }));
    const collectors = prepared.map(({ facts, options }) => new ChatCollector(facts, options, 1));
    await collectRuns(runs, (run, output) => collectors[run]!.accept(output));
    if (gone.aborted) return reply.hijack();
    return reply.type("application/json; charset=utf-8").send(batchReply(prepared, collectors));
  });
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
