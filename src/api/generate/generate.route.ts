// POST /inference/v1/generate: token ids in, token ids out, as clients of vLLM that train models call it.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { clientGone } from "../http/client-gone.ts";
import { bodyWithPriority } from "../http/priority-header.ts";
import { requestIdOf } from "../http/request-id.ts";
import { readChoiceCount } from "../request/choice-count.ts";
import { refusing } from "../request/prompt-errors.ts";
import { ErrorBody } from "../request/schema-parts.ts";
import { admitted } from "../run/admitted.ts";
import { collectRuns } from "../run/collect-runs.ts";
import { GenerationRun } from "../run/generation-run.ts";
import { streamRuns } from "../run/stream-runs.ts";
import type { Service } from "../service.ts";
import { prepareTokens } from "./generate.prepare.ts";
import { TokenChunk, TokenReply, TokenRequest } from "./generate.schema.ts";
import { validateTokens } from "./generate.validate.ts";

export function registerGenerate(app: FastifyInstance, service: Service): void {
  app.post(
    "/inference/v1/generate",
    {
      config: { access: "inference" },
      schema: {
        summary: "Token ids in, token ids out",
        tags: ["inference"],
        body: TokenRequest,
        response: {
          200: {
            description: "The choices",
            content: { "application/json": { schema: TokenReply }, "text/event-stream": { schema: TokenChunk } },
          },
          400: ErrorBody,
          401: ErrorBody,
          404: ErrorBody,
          429: ErrorBody,
        },
      },
    },
    (request, reply) => answerTokens(service, request, reply),
  );
}

async function answerTokens(service: Service, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const arrivedAt = performance.now();
  const gone = clientGone(reply.raw);
  const { body, ignored } = validateTokens(bodyWithPriority(request), service.engine.info);
  service.logIgnored(request, ignored, body);
  service.assertServing();
  const requestId = requestIdOf(request, reply, body.request_id);
  return admitted(service, request, { choices: readChoiceCount(body.n), model: body.model }, async (model, live) => {
    const prepared = await refusing(() => prepareTokens(service, body, model, requestId, gone));
    const run = new GenerationRun(service, { ...prepared.run, arrivedAt, clientGone: gone, live });
    if (body.stream === true) {
      await streamRuns(service, reply, gone, [run], prepared.choices);
      return reply;
    }
    await collectRuns([run], (index, output) => prepared.choices.accept(index, output));
    if (gone.aborted) return reply.hijack();
    return reply.type("application/json; charset=utf-8").send(prepared.choices.toJson(service.text.tokenizer));
  });
}
