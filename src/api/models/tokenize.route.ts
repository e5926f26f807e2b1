// POST /tokenize and /detokenize: text or messages ↔ token ids, exactly as the model sees them.

import type { FastifyInstance } from "fastify";
import { type Static, Type } from "typebox";
import { invalidCombination, ServiceError } from "../../errors/service-error.ts";
import { isJsonObject } from "../../json/json.ts";
import { givingWay, inTurns } from "../../pacing/turns.ts";
import { chatPrompt, tokenisePrompt } from "../../text/prompt.ts";
import { chatInput, checkContinuation, checkTemplateTrust, Message, templateFields } from "../generation/messages.ts";
import { ExtendedMessage, extendedFields, plainRequest } from "../generation/openai-extensions.ts";
import { jsonWith } from "../generation/reply.ts";
import { principalOf } from "../http/auth.ts";
import { asClientErrors } from "../http/errors.ts";
import { route } from "../route.ts";
import { AnyObject, nullable, orNull, readBody } from "../schema/body.ts";
import type { Service } from "../service.ts";

const TokenizeRequest = Type.Object(
  {
    model: orNull(Type.String()),
    prompt: Type.Optional(Type.String({ description: "A text; or send messages." })),
    messages: Type.Optional(Type.Array(Message)),
    add_special_tokens: Type.Optional(Type.Boolean({ description: "Default: true for a prompt, false for messages." })),
    return_token_strs: orNull(Type.Boolean(), { default: false, description: "Add the pieces of the vocabulary." }),
    ...templateFields,
  },
  { title: "TokenizeRequest" },
);

const ExtendedTokenizeRequest = Type.Object({
  ...TokenizeRequest.properties,
  ...extendedFields,
  messages: Type.Optional(Type.Array(ExtendedMessage)),
});

const TokenizeReply = Type.Object(
  {
    count: Type.Integer(),
    max_model_len: Type.Integer(),
    tokens: Type.Array(Type.Integer()),
    token_strs: nullable(Type.Array(Type.String())),
  },
  { title: "TokenizeReply" },
);

const DetokenizeRequest = Type.Object(
  { model: orNull(Type.String()), tokens: Type.Array(Type.Integer({ minimum: 0 })) },
  { title: "DetokenizeRequest" },
);

const DetokenizeReply = Type.Object({ prompt: Type.String() }, { title: "DetokenizeReply" });

export function registerTokenize(app: FastifyInstance, service: Service): void {
  app.post(
    "/tokenize",
    route("inference", "Text or messages to token ids", { body: TokenizeRequest, reply: TokenizeReply }),
    async (request, reply) => {
      const body = readTokenize(request.body ?? null, service.config);
      const model = await service.models.resolve(body.model, principalOf(request));
      model.release();
      await service.turns.next();
      const tokens = await tokenise(service, body, principalOf(request).id);
      const piece = (id: number) => service.text.tokenizer.piece(id) ?? "";
      const facts = { count: tokens.length, max_model_len: service.engine.info.maxModelLen };
      const lists = {
        tokens: await listJson(tokens, (id) => id),
        token_strs: body.return_token_strs === true ? await listJson(tokens, piece) : "null",
      };
      return reply
        .type("application/json; charset=utf-8")
        .send(jsonWith({ ...facts, tokens: null, token_strs: null }, lists));
    },
  );
  app.post(
    "/detokenize",
    route("inference", "Token ids to text", { body: DetokenizeRequest, reply: DetokenizeReply }),
    async (request) => {
      const { value: body } = readBody(DetokenizeRequest, request.body ?? null);
      const model = await service.models.resolve(body.model, principalOf(request));
      model.release();
      // A model may have more rows than its tokenizer has tokens. Such ids are valid but have no text.
      return { prompt: await inTurns(service.text.tokenizer.decodeSteps(body.tokens)) };
    },
  );
}

function readTokenize(body: unknown, { enableOpenaiExtensions }: Service["config"]): Static<typeof TokenizeRequest> {
  if (!enableOpenaiExtensions) return readBody(TokenizeRequest, body).value;
  const { messages, ...rest } = readBody(ExtendedTokenizeRequest, body).value;
  const { plain } = plainRequest({ ...rest, messages: messages ?? [] });
  return messages === undefined ? { ...plain, messages } : plain;
}

const ITEMS_PER_STEP = 4096;

/** The JSON of a long list, without holding up others. */
async function listJson(ids: readonly number[], item: (id: number) => unknown): Promise<string> {
  const giveWay = givingWay();
  const parts: string[] = [];
  for (let at = 0; at < ids.length; at += ITEMS_PER_STEP) {
    parts.push(JSON.stringify(ids.slice(at, at + ITEMS_PER_STEP).map(item)).slice(1, -1));
    await giveWay();
  }
  return `[${parts.join(",")}]`;
}

async function tokenise(service: Service, body: Static<typeof TokenizeRequest>, client: string): Promise<number[]> {
  if (body.messages === undefined) {
    if (body.prompt === undefined) throw invalidCombination("Either prompt or messages must be given.", "prompt");
    const { prompt } = body;
    const options = { addSpecialTokens: body.add_special_tokens ?? true };
    return asClientErrors(() => tokenisePrompt(service.text, prompt, options, null, client));
  }
  checkContinuation(body);
  checkTemplateTrust(body, service.config);
  const { messages } = body;
  const prompt = await asClientErrors(() => chatPrompt(service.text, chatInput({ ...body, messages }, client), null));
  return prompt.tokenIds;
}

// GET /tokenizer_info: the tokenizer's configuration as its folder has it, and the chat template in use. Off by default,
// because a template may say more than its owner wants to show.

/** Names of files on this machine. */
const HIDDEN = new Set(["vocab_file", "merges_file", "tokenizer_file", "name_or_path"]);

export function registerTokenizerInfo(app: FastifyInstance, service: Service): void {
  app.get(
    "/tokenizer_info",
    route("inference", "Configuration of the tokenizer (--enable-tokenizer-info-endpoint)", {
      ...{ reply: AnyObject, errors: [404] },
    }),
    async () => {
      if (!service.config.enableTokenizerInfoEndpoint) {
        throw new ServiceError("not_found", "This server does not offer it (--enable-tokenizer-info-endpoint).");
      }
      const { tokenizerConfig, specialTokens, defaultTemplate } = service.text;
      const shown = Object.entries(tokenizerConfig).filter(([key]) => !HIDDEN.has(key));
      return {
        tokenizer_class: "PreTrainedTokenizerFast",
        ...specialTokens,
        ...Object.fromEntries(shown.map(([key, value]) => [key, asText(value)])),
        ...(defaultTemplate === null ? {} : { chat_template: defaultTemplate }),
      };
    },
  );
}

/** Tokens that are described by an object, as their text. */
function asText(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asText);
  if (!isJsonObject(value)) return value;
  if (typeof value.content === "string") return value.content;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, asText(inner)]));
}
