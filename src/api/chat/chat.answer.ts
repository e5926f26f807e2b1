// Answers a chat in any dialect: read, admit, prepare, run, answer. Each step has its own file; this one puts them in order.
// A dialect translates a request into a chat, and the outputs of the chat into its own replies. Whatever is between, all
// dialects share: one queue, one engine, one set of metrics.
import type { FastifyReply, FastifyRequest } from "fastify";
import { principalOf } from "../http/auth.ts";
import { clientGone } from "../http/client-gone.ts";
import { requestIdOf } from "../http/request-id.ts";
import { readChoiceCount } from "../request/choice-count.ts";
import { refusing } from "../request/prompt-errors.ts";
import { admitted } from "../run/admitted.ts";
import { GenerationRun, type RunOutput } from "../run/generation-run.ts";
import { type ChunkSource, streamRuns } from "../run/stream-runs.ts";
import type { Service } from "../service.ts";
import { type PreparedChat, prepareChat } from "./chat.prepare.ts";
import type { ChatRules, ValidatedChat } from "./chat.validate.ts";

/** Collects the outputs of a chat until all choices have ended. */
export interface ReplyCollector {
  accept(output: RunOutput): void;
  /** The reply as JSON text. */
  toJson(): string | Promise<string>;
}

export interface ChatDialect {
  whole(prepared: PreparedChat, n: number): ReplyCollector;
  streamed(prepared: PreparedChat, n: number): ChunkSource;
}

export function chatRules({ engine, toolFormat, toolCommand }: Service): ChatRules {
  const { policy, maxModelLen } = engine.info;
  return { toolCommand: toolFormat === null ? toolCommand : null, policy, contextLength: maxModelLen };
}

/** `read`: reads the request and says in which dialect it is answered. It throws what is wrong with the request. */
export async function answerInDialect(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  read: () => Promise<{ chat: ValidatedChat; dialect: ChatDialect }>,
): Promise<FastifyReply> {
  const arrivedAt = performance.now();
  const gone = clientGone(reply.raw);
  const client = { id: principalOf(request).id, gone };
  const { chat, dialect } = await read();
  const { body } = chat;
  service.logIgnored(request, chat.ignored, body);
  if (body.tool_choice === undefined && (body.tools ?? []).length > 0) service.logUnparsedTools(principalOf(request));
  service.assertServing();
  const requestId = requestIdOf(request, reply, body.request_id);
  return admitted(service, request, { choices: readChoiceCount(body.n), model: body.model }, async (model, live) => {
    const prepared = await refusing(() => prepareChat(service, chat, model, requestId, client));
    const run = new GenerationRun(service, { ...prepared.run, arrivedAt, clientGone: gone, live });
    if (body.stream === true) {
      await streamRuns(service, reply, gone, [run], dialect.streamed(prepared, run.n));
      return reply;
    }
    const collector = dialect.whole(prepared, run.n);
    for await (const output of run.outputs()) {
      collector.accept(output);
    }
    if (gone.aborted) return reply.hijack();
    return reply.type("application/json; charset=utf-8").send(await collector.toJson());
  });
}
