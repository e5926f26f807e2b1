// POST /inference/v1/generate: token ids in, token ids out, as clients of vLLM that train models call it.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { bodyWithPriority } from "../http/priority-header.ts";
import { readChoiceCount } from "../request/choice-count.ts";
import { ErrorBody } from "../request/schema-parts.ts";
import { answer } from "../run/answer.ts";
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

function answerTokens(service: Service, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  return answer(service, request, reply, () => {
    const { body, ignored } = validateTokens(bodyWithPriority(request), service.engine.info);
    return {
      ...{ body, ignored },
      choices: readChoiceCount(body.n),
      async prepare(context) {
        const { run, choices, logprobs } = await prepareTokens(service, body, context);
        return {
          runs: [run],
          logprobs,
          whole: () => ({
            accept: (index, output) => choices.accept(index, output),
            toJson: () => choices.toJson(service.text.tokenizer),
          }),
          streamed: () => choices,
        };
      },
    };
  });
}
