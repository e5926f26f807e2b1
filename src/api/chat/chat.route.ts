// POST /v1/chat/completions: validate, admit, prepare, run, answer. Each step has its own file; this one puts them in order.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { principalOf } from "../http/auth.ts";
import { clientGone } from "../http/client-gone.ts";
import { bodyWithPriority } from "../http/priority-header.ts";
import { requestIdOf } from "../http/request-id.ts";
import { readChoiceCount } from "../request/choice-count.ts";
import { refusing } from "../request/prompt-errors.ts";
import { errorReplies } from "../request/schema-parts.ts";
import { admitted } from "../run/admitted.ts";
import { GenerationRun } from "../run/generation-run.ts";
import { streamRuns } from "../run/stream-runs.ts";
import type { Service } from "../service.ts";
import { type PreparedChat, prepareChat } from "./chat.prepare.ts";
import { ChatCollector } from "./chat.response.ts";
import { ChatChunk, ChatReply } from "./chat.response-schema.ts";
import { ChatRequest } from "./chat.schema.ts";
import { ChatChunks } from "./chat.stream.ts";
import { type ChatRules, validateChat } from "./chat.validate.ts";

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

export function chatRules({ engine, toolFormat }: Service): ChatRules {
  const { policy, maxModelLen } = engine.info;
  return { toolChoice: toolFormat !== null, policy, contextLength: maxModelLen };
}

export async function answerChat(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const arrivedAt = performance.now();
  const gone = clientGone(reply.raw);
  const client = { id: principalOf(request).id, gone };
  const validated = validateChat(bodyWithPriority(request), chatRules(service));
  const { body } = validated;
  service.logIgnored(request.id, validated.ignored);
  if (body.tool_choice === undefined && (body.tools ?? []).length > 0) service.logUnparsedTools(principalOf(request));
  service.assertServing();
  const requestId = requestIdOf(request, reply, body.request_id);
  return admitted(service, request, { choices: readChoiceCount(body.n), model: body.model }, async (model, live) => {
    const prepared = await refusing(() => prepareChat(service, validated, model, requestId, client));
    const run = new GenerationRun(service, { ...prepared.run, arrivedAt, clientGone: gone, live });
    return body.stream === true ? streamed(run, prepared) : whole(run, prepared);
  });

  async function streamed(run: GenerationRun, { facts, options }: PreparedChat): Promise<FastifyReply> {
    await streamRuns(service, reply, gone, [run], new ChatChunks(facts, options, run.n));
    return reply;
  }

  async function whole(run: GenerationRun, { facts, options }: PreparedChat): Promise<FastifyReply> {
    const collector = new ChatCollector(facts, options, run.n);
    for await (const output of run.outputs()) {
      collector.accept(output);
    }
    if (gone.aborted) return reply.hijack();
    return reply.type("application/json; charset=utf-8").send(collector.toJson(service.text.tokenizer));
  }
}
