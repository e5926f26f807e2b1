// Turns messages and options into prompt token ids: render, bound the length, tokenise, truncate, check. Every chat
// goes through here; completions and /tokenize use the same functions for text. Throws PromptError.

import { writeExactJson } from "../json/exact-json.ts";
import type { RenderInput } from "./chat-template.ts";
import { type ChatDocument, type ChatMessage, type ChatTool, joinedText } from "./messages.ts";
import { PromptError } from "./prompt-error.ts";
import { boundText, countedTokens, fitTokens, type LengthRules } from "./prompt-length.ts";
import type { TextModel } from "./text-model.ts";
import type { EncodeOptions } from "./tokenizer-contract.ts";

export interface ChatInput {
  /** At least one. */
  messages: readonly ChatMessage[];
  tools?: readonly ChatTool[] | null;
  documents?: readonly ChatDocument[] | null;
  /** Default true. */
  addGenerationPrompt?: boolean;
  /** Default false; needs addGenerationPrompt to be false. */
  continueFinalMessage?: boolean;
  /** Default false: templates write special tokens themselves. */
  addSpecialTokens?: boolean;
  /** The text of a template, or the name of one of the model's. */
  chatTemplate?: string | null;
  chatTemplateKwargs?: Readonly<Record<string, unknown>> | null;
  reasoningEffort?: string | null;
  /** The caller's id; see TextModel.render. */
  client?: string;
}

export interface ChatPrompt {
  tokenIds: number[];
  /** The rendered conversation, with the marks of LiteralText. */
  text: string;
  /** The reply's role: "assistant", or the last message's role when no generation prompt was added. */
  replyRole: string;
  /** The text that `echo` prepends to the reply; null when the last message's role is not the reply's. */
  echoText: string | null;
}

/** Limit for texts that no context length bounds, in bytes of UTF-8. A token stands for at least one byte. */
const LONGEST_FREE_TEXT = 1_048_576;

/** `length` is null for a prompt that will not run (/tokenize). */
export async function chatPrompt(
  model: TextModel,
  request: ChatInput,
  length: LengthRules | null,
): Promise<ChatPrompt> {
  const input = renderInput(model, request);
  if (length !== null && length.truncatePromptTokens === null) checkBesideMessages(model, input, request, length);
  const text = await model.render(input, requestedTemplate(request), request.client);
  const last = input.messages.at(-1)!;
  const options = { addSpecialTokens: request.addSpecialTokens ?? false, hasMarks: model.hasMarks };
  const replyRole = input.addGenerationPrompt ? "assistant" : last.role;
  return {
    tokenIds: await tokenisePrompt(model, text, options, length, request.client),
    text,
    replyRole,
    echoText: last.role === replyRole ? joinedText(last) : null,
  };
}

/** Refuses tools and documents longer than any context before rendering them. */
function checkBesideMessages(
  model: TextModel,
  { tools, documents }: RenderInput,
  request: ChatInput,
  { contextLength }: LengthRules,
): void {
  const longest = contextLength * model.longestToken;
  for (const [param, value] of Object.entries({ tools, documents })) {
    if (value === null || !model.rendersHere(param, requestedTemplate(request), tools !== null)) continue;
    const characters = writeExactJson(value).length;
    if (characters <= longest) continue;
    const message =
      `This model's maximum context length is ${contextLength} tokens. However, ${param} has ${characters} characters, ` +
      `more than the ${longest} that so many tokens can hold.`;
    throw new PromptError("context_length_exceeded", param, message);
  }
}

/** For trusted callers: default template, no limits. See Tokenizer for `maxTokens`. */
export async function encodeChat(
  model: TextModel,
  request: ChatInput,
  maxTokens = Number.POSITIVE_INFINITY,
): Promise<number[]> {
  const text = await model.render(renderInput(model, request), null, request.client);
  const options = { addSpecialTokens: request.addSpecialTokens ?? false, hasMarks: model.hasMarks, maxTokens };
  return model.encode(text, options, request.client);
}

type PromptOptions = Pick<EncodeOptions, "addSpecialTokens" | "hasMarks">;

/** `client`: the caller's id; see TextModel.encode. */
export async function tokenisePrompt(
  model: TextModel,
  text: string,
  options: PromptOptions,
  length: LengthRules | null,
  client?: string,
): Promise<number[]> {
  if (length === null) {
    const bytes = Buffer.byteLength(text);
    if (bytes > LONGEST_FREE_TEXT) {
      const message = `A text of ${bytes} bytes is too long to tokenise: at most ${LONGEST_FREE_TEXT} are read at once.`;
      throw new PromptError("text_too_long", null, message);
    }
    return model.encode(text, options, client);
  }
  return fitTokens(await encodeBounded(model, text, options, length, client), length);
}

/** Tokenises a text before truncation. Skips the parts of an overlong text that cannot matter. */
export async function encodeBounded(
  model: TextModel,
  text: string,
  options: PromptOptions,
  length: LengthRules,
  client?: string,
): Promise<number[]> {
  const maxTokens = length.truncatePromptTokens === null ? countedTokens(length) : Number.POSITIVE_INFINITY;
  return model.encode(boundText(text, length, model.longestToken), { ...options, maxTokens }, client);
}

function renderInput(model: TextModel, request: ChatInput): RenderInput {
  const { chat_template: _, ...kwargs } = { ...model.defaultKwargs, ...request.chatTemplateKwargs };
  return {
    messages: request.messages,
    tools: request.tools ?? null,
    documents: request.documents ?? null,
    addGenerationPrompt: request.addGenerationPrompt ?? true,
    continueFinalMessage: request.continueFinalMessage ?? false,
    reasoningEffort: request.reasoningEffort ?? null,
    specialTokens: model.specialTokens,
    kwargs,
  };
}

/** The template may also arrive as the template variable `chat_template`. */
function requestedTemplate(request: ChatInput): string | null {
  if (request.chatTemplate != null) return request.chatTemplate;
  const named = request.chatTemplateKwargs?.chat_template;
  return typeof named === "string" ? named : null;
}
