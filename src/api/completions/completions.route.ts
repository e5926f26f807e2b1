// POST /v1/completions, the older text dialect.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { givingWay } from "../../pacing/turns.ts";
import { bodyWithPriority } from "../http/priority-header.ts";
import { readChoiceCount } from "../request/choice-count.ts";
import { errorReplies } from "../request/schema-parts.ts";
import { answer } from "../run/answer.ts";
import { jsonWith } from "../run/logprobs.wire.ts";
import { usageOf } from "../run/reply-facts.ts";
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

export function answerCompletion(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  return answer(service, request, reply, () => {
    const { body, prompts, ignored } = validateCompletion(bodyWithPriority(request), service.engine.info);
    return {
      ...{ body, ignored },
      choices: readChoiceCount(body.n) * prompts.length,
      async prepare(context) {
        const prepared = await prepareCompletion(service, body, prompts, context);
        return {
          runs: prepared.runs,
          logprobs: prepared.logprobs,
          whole: () => ({
            accept: (run, output) => prepared.prompts[run]!.accept(output),
            toJson: () => wholeReply(prepared),
          }),
          streamed: () => new CompletionChunks(prepared.facts, prepared.prompts),
        };
      },
    };
  });
}

async function wholeReply({ facts, prompts }: PreparedCompletion): Promise<string> {
  const giveWay = givingWay();
  let choices = "";
  for (const prompt of prompts) {
    for (const { json } of prompt.take()) {
      choices += `${choices === "" ? "" : ","}${json}`;
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
  return jsonWith(reply, { choices: `[${choices}]` });
}
