// Answers POST /v1/responses: the conversation is read from the request and from what is stored, then it is a chat.
import { randomUUID } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { ServiceError } from "../../errors/service-error.ts";
import { bytesOf, type NewResponse } from "../../store/tables/responses.ts";
import { answerInDialect, type ChatDialect, chatRules } from "../chat/chat.answer.ts";
import type { PreparedChat } from "../chat/chat.prepare.ts";
import { translatedChat } from "../chat/chat.validate.ts";
import { principalOf } from "../http/auth.ts";
import { bodyWithPriority } from "../http/priority-header.ts";
import { inTermsOf } from "../request/field-names.ts";
import { readBody } from "../request/read-body.ts";
import type { Service } from "../service.ts";
import { Conversation } from "./items.ts";
import { type Keep, ResponseReply } from "./responses.reply.ts";
import { type ResponsesBody, ResponsesRequest } from "./responses.schema.ts";
import { chatOf, FIELD_NAMES, wantsLogprobs } from "./responses.translate.ts";
import { inputItems, outputItems, readConversation, responseId } from "./stored-items.ts";

export function answerResponse(service: Service, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  return inTermsOf(FIELD_NAMES, () =>
    answerInDialect(service, request, reply, async () => {
      const { value: body, ignored } = readBody(ResponsesRequest, bodyWithPriority(request) ?? null);
      const key = randomUUID().replaceAll("-", "");
      const { id: client, workspace } = principalOf(request);
      if (body.input === undefined) throw new ServiceError("invalid_value", "input is missing.", { param: "input" });
      const previousId = body.previous_response_id || null;
      const conversation = new Conversation(service.config.enableOpenaiExtensions);
      const input = await readConversation(
        service,
        workspace.id,
        { previous: previousId, own: inputItems(body.input, key) },
        { room: service.storedMemory.conversation(client, reply.raw), conversation },
      );
      if (conversation.messages.length === 0) {
        throw new ServiceError("invalid_value", "input must have at least one item.", { param: "input" });
      }
      const rules = chatRules(service);
      const { chat: translated, custom } = chatOf(body, conversation.messages, rules);
      const chat = translatedChat(translated, rules, { custom, ignored });
      const row = { id: responseId(key), previousId, input };
      const keeps = body.store !== false && service.responses.keeps;
      if (keeps && body.store === true) await checkFits(service, workspace.id, row);
      const keep: Keep = keeps
        ? (response, output) => kept(service, workspace.id, { ...row, response, output: outputItems(output) })
        : null;
      return { chat, dialect: responsesDialect(body, key, keep) };
    }),
  );
}

/** A client that says `store: true` counts on it. */
async function checkFits(
  { responses }: Service,
  owner: string,
  row: Omit<NewResponse, "response" | "output">,
): Promise<void> {
  const bytes = bytesOf({ ...row, response: "", output: [] });
  if (bytes <= responses.mostBytes) return;
  const message =
    `This response would take ${bytes} bytes or more of the ${responses.mostBytes} that its workspace may keep ` +
    `(--keep-responses), of which ${await responses.used(owner)} are used: send less, or store: false.`;
  throw new ServiceError("invalid_value", message, { param: "store" });
}

/** As items, which take three times as much as their JSON; in the last events of an item, the copy that is kept, and the response. */
const COPIES = { whole: 5, streamed: 8 };

function responsesDialect(body: ResponsesBody, key: string, keep: Keep): ChatDialect {
  const replyFor = ({ facts, options, run }: PreparedChat, streams: boolean) => {
    const { temperature, topP } = run.request.sampling;
    const known = { body, model: facts.model, temperature, topP, promptTokens: facts.promptTokens };
    const { policyVersion, parallelToolCalls } = options;
    return new ResponseReply(
      { id: responseId(key), createdAt: facts.created, ...known, policyVersion },
      { key, logprobs: wantsLogprobs(body), parallelToolCalls },
      keep,
      streams,
    );
  };
  return {
    copies: COPIES,
    whole: (prepared) => replyFor(prepared, false),
    streamed: (prepared) => replyFor(prepared, true),
  };
}

/** An answer is worth more than its copy: if it cannot be kept, the client gets it with `store: false`. */
async function kept({ responses, storedMemory, log }: Service, owner: string, row: NewResponse): Promise<boolean> {
  if (Buffer.byteLength(row.response) > storedMemory.largest) return false;
  try {
    return await responses.save(owner, row);
  } catch (error) {
    log.error("a response could not be kept", { response: row.id, error });
    return false;
  }
}
