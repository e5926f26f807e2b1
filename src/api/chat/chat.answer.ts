// Answers a chat in any dialect. A dialect translates a request into a chat, and the outputs of the chat into its own replies.
// Whatever is between, all dialects share.
import type { FastifyReply, FastifyRequest } from "fastify";
import { principalOf } from "../http/auth.ts";
import { readChoiceCount } from "../request/choice-count.ts";
import { answer, type ReplyCollector } from "../run/answer.ts";
import type { ChunkSource } from "../run/stream-runs.ts";
import type { Service } from "../service.ts";
import { type LogprobCopies, type PreparedChat, prepareChat } from "./chat.prepare.ts";
import type { ChatRules, ValidatedChat } from "./chat.validate.ts";

export interface ChatDialect {
  /** Default: as in a chat. */
  copies?: LogprobCopies;
  whole(prepared: PreparedChat, n: number): ReplyCollector;
  streamed(prepared: PreparedChat, n: number): ChunkSource;
}

export function chatRules({ config, engine, toolFormat, toolCommand }: Service): ChatRules {
  const { policy, maxModelLen } = engine.info;
  return {
    toolCommand: toolFormat === null ? toolCommand : null,
    policy,
    extensions: config.enableOpenaiExtensions,
    contextLength: maxModelLen,
  };
}

/** `read`: reads the request and says in which dialect it is answered. It throws what is wrong with the request. */
export function answerInDialect(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  read: () => Promise<{ chat: ValidatedChat; dialect: ChatDialect }>,
): Promise<FastifyReply> {
  return answer(service, request, reply, async () => {
    const { chat, dialect } = await read();
    const { body } = chat;
    if (body.tool_choice === undefined && (body.tools ?? []).length > 0) service.logUnparsedTools(principalOf(request));
    const n = readChoiceCount(body.n);
    return {
      ...{ body, ignored: chat.ignored },
      choices: n,
      async prepare(context) {
        const prepared = await prepareChat(service, chat, context, dialect.copies);
        return {
          runs: [prepared.run],
          logprobs: prepared.logprobs,
          whole: () => dialect.whole(prepared, n),
          streamed: () => dialect.streamed(prepared, n),
        };
      },
    };
  });
}
