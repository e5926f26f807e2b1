// POST /v1/completions, the older text dialect.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { givingWay } from "../../pacing/give-way.ts";
import { principalOf } from "../http/auth.ts";
import { clientGone } from "../http/client-gone.ts";
import { bodyWithPriority } from "../http/priority-header.ts";
import { requestIdOf } from "../http/request-id.ts";
import { readChoiceCount } from "../request/choice-count.ts";
import { refusing } from "../request/prompt-errors.ts";
import { errorReplies } from "../request/schema-parts.ts";
import { admitted } from "../run/admitted.ts";
import { collectRuns } from "../run/collect-runs.ts";
import { GenerationRun } from "../run/generation-run.ts";
import { jsonWith } from "../run/logprobs.wire.ts";
import { usageOf } from "../run/reply-facts.ts";
import { streamRuns } from "../run/stream-runs.ts";
import type { Service } from "../service.ts";
import { type PreparedCompletion, prepareCompletion } from "./completions.prepare.ts";
import { CompletionChunk, CompletionReply, CompletionRequest } from "./completions.schema.ts";
import { CompletionChunks } from "./completions.stream.ts";
import { validateCompletion } from "./completions.validate.ts";

export function registerCompletions(app: FastifyInstance, service: Service): void {
  app.post(
    "/v1/completions",
    {
      config: { access: "inference" },
      schema: {
        summary: "Text completion",
        tags: ["inference"],
        body: CompletionRequest,
        response: {
          200: {
            description: "The choices",
            content: {
              "application/json": { schema: CompletionReply },
              "text/event-stream": { schema: CompletionChunk },
            },
          },
          ...errorReplies(400, 401, 404, 429),
        },
      },
    },
    (request, reply) => answerCompletion(service, request, reply),
  );
}

export async function answerCompletion(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const arrivedAt = performance.now();
  const gone = clientGone(reply.raw);
  const client = { id: principalOf(request).id, gone };
  const { body, prompts, ignored } = validateCompletion(bodyWithPriority(request), service.engine.info);
  service.logIgnored(request, ignored, body);
  service.assertServing();
  const requestId = requestIdOf(request, reply, body.request_id);
  const choices = readChoiceCount(body.n) * prompts.length;
  return admitted(service, request, { choices, model: body.model }, async (model, live) => {
    const prepared = await refusing(() => prepareCompletion(service, body, prompts, model, requestId, client));
    const runs = prepared.runs.map((run) => new GenerationRun(service, { ...run, arrivedAt, clientGone: gone, live }));
    if (body.stream === true) {
      await streamRuns(service, reply, gone, runs, new CompletionChunks(prepared.facts, prepared.prompts));
      return reply;
    }
    await collectRuns(runs, (run, output) => prepared.prompts[run]!.accept(output));
    return gone.aborted
      ? reply.hijack()
      : reply.type("application/json; charset=utf-8").send(await wholeReply(prepared));
  });
}

async function wholeReply({ facts, prompts }: PreparedCompletion): Promise<string> {
  const giveWay = givingWay();
  const choices: string[] = [];
  for (const prompt of prompts) {
    for (const { json } of prompt.take()) {
      choices.push(json);
      await giveWay();
    }
  }
  const completionTokens = prompts.reduce((sum, prompt) => sum + prompt.shownTokens, 0);
  const cachedTokens = prompts.reduce((sum, prompt) => sum + prompt.cachedTokens, 0);
  const reply = {
    id: facts.id,
    object: "text_completion",
    created: facts.created,
    model: facts.model,
    choices: null,
    service_tier: null,
    system_fingerprint: facts.systemFingerprint,
    usage: usageOf(facts, { completion: completionTokens, cached: cachedTokens, reasoning: 0 }),
    kv_transfer_params: prompts.find((prompt) => prompt.kvTransferParams)?.kvTransferParams ?? null,
  };
  return jsonWith(reply, { choices: `[${choices.join(",")}]` });
}
