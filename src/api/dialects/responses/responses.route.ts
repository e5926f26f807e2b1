// /v1/responses, OpenAI's Responses API: create, read, delete. A response belongs to the workspace of its token.
import { randomUUID } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { invalidValue, ServiceError } from "../../../errors/service-error.ts";
import type { ItemPage, PageOptions } from "../../../store/tables/conversations.ts";
import { bytesOf, type NewResponse } from "../../../store/tables/responses.ts";
import { principalOf } from "../../http/auth.ts";
import { renameParams } from "../../http/errors.ts";
import { bodyWithPriority } from "../../http/headers.ts";
import { type ById, route } from "../../route.ts";
import { readBody } from "../../schema/body.ts";
import type { Service } from "../../service.ts";
import { answerInDialect, chatRules, type Dialect } from "../chat/chat.prepare.ts";
import { translatedChat } from "../chat/chat.validate.ts";
import { Conversation } from "./items.ts";
import { type Keep, ResponseReply } from "./responses.reply.ts";
import {
  DeletedResponse,
  InputItems,
  ResponseEvent,
  ResponseObject,
  type ResponsesBody,
  ResponsesRequest,
} from "./responses.schema.ts";
import { chatOf, FIELD_NAMES, wantsLogprobs } from "./responses.translate.ts";
import { inputItems, outputItems, readConversation, responseId, responseOf } from "./stored-items.ts";

// Answers POST /v1/responses: the conversation is read from the request and from what is stored, then it is a chat.

function answerResponse(service: Service, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  return renameParams(FIELD_NAMES, () =>
    answerInDialect(service, request, reply, async () => {
      const { value: body, ignored } = readBody(ResponsesRequest, bodyWithPriority(request) ?? null);
      const key = randomUUID().replaceAll("-", "");
      const { id: client, workspace } = principalOf(request);
      if (body.input === undefined) throw invalidValue("input is missing.", "input");
      const previousId = body.previous_response_id || null;
      const conversation = new Conversation(service.config.enableOpenaiExtensions);
      const input = await readConversation(
        service,
        workspace.id,
        { previous: previousId, own: inputItems(body.input, key) },
        { room: service.storedMemory.conversation(client, reply.raw), conversation },
      );
      if (conversation.messages.length === 0) throw invalidValue("input must have at least one item.", "input");
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
  throw invalidValue(message, "store");
}

/** As items, which take three times as much as their JSON; in the last events of an item, the copy that is kept, and the response. */
const COPIES = { whole: 5, streamed: 8 };

function responsesDialect(body: ResponsesBody, key: string, keep: Keep): Dialect {
  return {
    copies: COPIES,
    reply({ facts, options, run }, streams) {
      const { temperature, topP } = run.request.sampling;
      const known = { body, model: facts.model, temperature, topP, promptTokens: facts.promptTokens };
      const { policyVersion, parallelToolCalls } = options;
      return new ResponseReply(
        { id: responseId(key), createdAt: facts.created, ...known, policyVersion },
        { key, logprobs: wantsLogprobs(body), parallelToolCalls },
        keep,
        streams,
      );
    },
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

interface Stored extends ById {
  Querystring: Record<string, string | undefined>;
}

export function registerResponses(app: FastifyInstance, service: Service): void {
  app.post(
    "/v1/responses",
    route("inference", "A response", {
      description: "OpenAI's Responses API. With stream: true the reply is text/event-stream, without [DONE].",
      ...{ body: ResponsesRequest, reply: ResponseObject, chunk: ResponseEvent },
    }),
    (request, reply) => answerResponse(service, request, reply),
  );
  app.get<Stored>(
    "/v1/responses/:id",
    route("inference", "A stored response", { reply: ResponseObject, errors: [400, 429] }),
    async (request, reply) => {
      if (request.query.stream === "true") {
        throw invalidValue("A stored response cannot be streamed again: read it without stream.", "stream");
      }
      const { bytes } = await found(service, request);
      service.storedMemory.hold(principalOf(request).id, reply.raw).reserve(bytes);
      const response = await service.responses.get(ownerOf(request), request.params.id);
      if (response === null) throw unknown(request.params.id);
      return reply.type("application/json; charset=utf-8").send(response);
    },
  );
  app.delete<Stored>(
    "/v1/responses/:id",
    route("inference", "Delete a stored response", { reply: DeletedResponse, errors: [400] }),
    async (request) => {
      const { id } = request.params;
      if (!(await service.responses.delete(ownerOf(request), id))) throw unknown(id);
      return { id, object: "response", deleted: true };
    },
  );
  app.get<Stored>(
    "/v1/responses/:id/input_items",
    route("inference", "The input of a stored response", { reply: InputItems, errors: [400, 429] }),
    async (request, reply) => {
      const { inputs } = await found(service, request);
      const options = pageOptions(request.query);
      const held = service.storedMemory.hold(principalOf(request).id, reply.raw);
      const page = await service.conversations.page(
        ownerOf(request),
        { id: request.params.id, inputs },
        options,
        (bytes) => held.reserve(bytes),
        responseOf,
      );
      if (page === null) {
        const message = `The input of the response has no item with the id '${options.after!.slice(0, 100)}'.`;
        throw invalidValue(message, "after");
      }
      return reply.type("application/json; charset=utf-8").send(listOf(page));
    },
  );
  app.post<Stored>(
    "/v1/responses/:id/cancel",
    route("inference", "Always refused", { errors: [400] }),
    async (request) => {
      await found(service, request);
      const message =
        "Only background responses can be cancelled, and this server has none. Close the connection to end a response.";
      throw invalidValue(message);
    },
  );
}

function ownerOf(request: FastifyRequest): string {
  return principalOf(request).workspace.id;
}

async function found(service: Service, request: FastifyRequest<Stored>): Promise<{ bytes: number; inputs: number }> {
  const { id } = request.params;
  const size = await service.responses.sizeOf(ownerOf(request), id);
  if (size === null) throw unknown(id);
  return size;
}

function unknown(id: string): ServiceError {
  return new ServiceError("unknown_response", `Response with id '${id.slice(0, 100)}' not found.`);
}

/** `limit`: 1 to 100, by default 20. `order`: newest first unless it is asc. `after`: the id of an item. */
function pageOptions({ limit: wanted = "20", order = "desc", after }: Stored["Querystring"]): PageOptions {
  const limit = Number(wanted);
  if (!Number.isInteger(limit) || limit < 1 || limit > 100) {
    throw invalidValue("limit must be an integer from 1 to 100.", "limit");
  }
  if (order !== "asc" && order !== "desc") throw invalidValue("order must be asc or desc.", "order");
  return { limit, descending: order === "desc", after: after ?? null };
}

/** JSON. The items have been JSON all the time. */
function listOf({ items, hasMore }: ItemPage): string {
  const data = items.map(({ id, item }) => item ?? JSON.stringify({ type: "item_reference", id }));
  const ends = JSON.stringify({ first_id: items[0]?.id ?? null, last_id: items.at(-1)?.id ?? null, has_more: hasMore });
  return `{"object":"list","data":[${data.join(",")}],${ends.slice(1)}`;
}
