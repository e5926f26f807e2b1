// GET /tokenizer_info: the tokenizer's configuration as its folder has it, and the chat template in use. Off by default,
// because a template may say more than its owner wants to show.
import type { FastifyInstance } from "fastify";
import { ServiceError } from "../../errors/service-error.ts";
import { isJsonObject } from "../../json/json.ts";
import { AnyObject, ErrorBody } from "../request/schema-parts.ts";
import type { Service } from "../service.ts";

/** Names of files on this machine. */
const HIDDEN = new Set(["vocab_file", "merges_file", "tokenizer_file", "name_or_path"]);

export function registerTokenizerInfo(app: FastifyInstance, service: Service): void {
  app.get(
    "/tokenizer_info",
    {
      config: { access: "inference" },
      schema: {
        summary: "Configuration of the tokenizer (--enable-tokenizer-info-endpoint)",
        tags: ["text"],
        response: { 200: AnyObject, 401: ErrorBody, 404: ErrorBody },
      },
    },
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
