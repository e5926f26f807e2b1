// Answers POST /v1/responses: the conversation is read from the request and from what is stored, then it is a chat.
import { randomUUID } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { ServiceError } from "../../errors/service-error.ts";
import { answerInDialect, type ChatDialect, chatRules } from "../chat/chat.answer.ts";
import type { PreparedChat } from "../chat/chat.prepare.ts";
import { translatedChat, type ValidatedChat } from "../chat/chat.validate.ts";
import { principalOf } from "../http/auth.ts";
import { bodyWithPriority } from "../http/priority-header.ts";
import { inTermsOf } from "../request/field-names.ts";
import { readBody } from "../request/read-body.ts";
import type { Service } from "../service.ts";
import { Conversation, type Item } from "./items.ts";
import { type Keep, ResponseReply } from "./responses.reply.ts";
import { type ResponsesBody, ResponsesRequest } from "./responses.schema.ts";
import { chatOf, FIELD_NAMES, wantsLogprobs } from "./responses.translate.ts";
import { earlierItems, inputItems, resolvedItems, responseId } from "./stored-items.ts";

export function answerResponse(service: Service, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  return inTermsOf(FIELD_NAMES, () =>
    answerInDialect(service, request, reply, async () => {
      const { value: body, ignored } = readBody(ResponsesRequest, bodyWithPriority(request) ?? null);
      const key = randomUUID().replaceAll("-", "");
      const owner = principalOf(request).workspace.id;
      const { chat, input } = await readChat(service, body, owner, key, ignored);
      const id = responseId(key);
      const previousId = body.previous_response_id ?? null;
      const keep: Keep =
        body.store !== false && service.responses.keeps
          ? (response) => kept(service, owner, { id, previousId, response, input: JSON.stringify(input) })
          : null;
      return { chat, dialect: responsesDialect(body, key, keep) };
    }),
  );
}

async function readChat(
  service: Service,
  body: ResponsesBody,
  owner: string,
  key: string,
  ignored: string[],
): Promise<{ chat: ValidatedChat; input: Item[] }> {
  const { input: given, previous_response_id: previous } = body;
  if (given === undefined) throw new ServiceError("invalid_value", "input is missing.", { param: "input" });
  const conversation = new Conversation(service.config.enableOpenaiExtensions);
  for (const item of previous ? await earlierItems(service.responses, owner, previous) : []) {
    conversation.add(item, "previous_response_id");
  }
  const input = await resolvedItems(service.responses, owner, inputItems(given, key));
  for (const [index, item] of input.entries()) conversation.add(item, `input.${index}`);
  if (conversation.messages.length === 0) {
    throw new ServiceError("invalid_value", "input must have at least one item.", { param: "input" });
  }
  const rules = chatRules(service);
  const { chat, custom } = chatOf(body, conversation.messages, rules);
  return { chat: translatedChat(chat, rules, { custom, ignored }), input };
}

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
    whole: (prepared) => replyFor(prepared, false),
    streamed: (prepared) => replyFor(prepared, true),
  };
}

/** An answer is worth more than its copy: if it cannot be kept, the client gets it with `store: false`. */
async function kept(
  { responses, log }: Service,
  owner: string,
  row: Parameters<Service["responses"]["save"]>[1],
): Promise<boolean> {
  try {
    await responses.save(owner, row);
    return true;
  } catch (error) {
    log.error("a response could not be kept", { response: row.id, error });
    return false;
  }
}
