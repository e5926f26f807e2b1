// Reads a chat request, or a batch of them, and checks the rules between its fields. Some rules look at the body as it came,
// because they care about its spelling; the others look at the values as read. Rules that other routes share are in
// generation/limits.ts.
import { invalidCombination, invalidValue, ServiceError } from "../../../errors/service-error.ts";
import { readOutputShape, type WantedShape } from "../../generation/constraint.ts";
import {
  checkLogprobSpelling,
  checkPriority,
  checkRepeated,
  checkStops,
  checkStream,
} from "../../generation/limits.ts";
import { checkContinuation } from "../../generation/messages.ts";
import { type CustomTools, effortFields, NO_CUSTOM_TOOLS, plainRequest } from "../../generation/openai-extensions.ts";
import { readRepetitionDetection } from "../../generation/sampling.ts";
import { readBody } from "../../schema/body.ts";
import { BatchRequest, type ChatBody, ChatRequest, ExtendedBatchRequest, ExtendedChatRequest } from "./chat.schema.ts";

export interface ChatRules {
  /** How to start a server that parses tool calls; null = this one does, so tool_choice may be other than none. */
  toolCommand: string | null;
  policy: "priority" | "fcfs";
  /** Requests may use what OpenAI's API has beyond the interface. */
  extensions: boolean;
  /** In tokens. */
  contextLength: number;
}

export interface ValidatedChat {
  body: ChatBody;
  /** What response_format or structured_outputs asks for. */
  shape: WantedShape | null;
  /** Those of the tools that get a text. */
  custom: CustomTools;
  /** Unknown fields that were ignored. */
  ignored: string[];
}

export function validateChat(raw: unknown, rules: ChatRules): ValidatedChat {
  const source = (typeof raw === "object" && raw !== null ? raw : {}) as Record<string, unknown>;
  checkSpelling(source, rules);
  checkMessageCount(source.messages, source, rules);
  const { body, custom, ignored } = readChat(raw ?? null, rules);
  checkMessages(body.messages);
  return { body, custom, shape: checkRules(body, source, rules), ignored };
}

function readChat(raw: unknown, { extensions }: ChatRules): Pick<ValidatedChat, "body" | "custom" | "ignored"> {
  if (extensions) {
    const { value, ignored } = readBody(ExtendedChatRequest, raw);
    const { plain, custom } = plainRequest(value);
    return { body: plain, custom, ignored };
  }
  const { value, ignored } = readBody(ChatRequest, raw);
  return { body: value, custom: NO_CUSTOM_TOOLS, ignored };
}

/** A chat that another dialect was translated into. */
export function translatedChat(
  body: ChatBody,
  rules: ChatRules,
  { custom = NO_CUSTOM_TOOLS, ignored }: { custom?: CustomTools; ignored: string[] },
): ValidatedChat {
  const source = { ...body };
  checkMessageCount(body.messages, source, rules);
  checkMessages(body.messages);
  return { body, custom, shape: checkRules(body, source, rules), ignored };
}

/** Reads conversations with the same settings, as one chat for each. */
export function validateBatch(raw: unknown, rules: ChatRules): ValidatedChat[] {
  const { value, ignored } = readBody(rules.extensions ? ExtendedBatchRequest : BatchRequest, raw ?? null);
  const { messages: conversations, reasoning_effort: effort, chat_template_kwargs: kwargs, ...given } = value;
  const settings = { ...given, ...effortFields(effort, kwargs) };
  if (conversations.length === 0) throw invalidValue("messages must have at least one conversation.", "messages");
  if (settings.stream === true) throw invalidValue("A batch cannot be streamed.", "stream");
  if ((settings.n ?? 1) !== 1) throw invalidValue("n must be 1: a batch has one choice for each conversation.", "n");
  if ((settings.tools ?? []).length > 0) throw invalidValue("A batch cannot use tools.", "tools");
  const source = raw as Record<string, unknown>;
  checkSpelling(source, rules);
  for (const messages of conversations) {
    checkMessageCount(messages, source, rules);
    checkMessages(messages);
  }
  checkRepeated(settings, conversations.length);
  const shape = checkRules(settings, source, rules);
  return conversations.map((messages) => {
    return { body: { ...settings, messages }, custom: NO_CUSTOM_TOOLS, shape, ignored };
  });
}

function checkSpelling(source: Record<string, unknown>, { extensions }: ChatRules): void {
  checkLogprobSpelling(source);
  if (!extensions) checkToolChoiceSpelling(source);
}

type ChatSettings = Omit<ChatBody, "messages">;

function checkMessages(messages: ChatBody["messages"]): void {
  if (messages.length === 0) throw invalidValue("messages must have at least one message.", "messages");
}

/**
 * Checks the rules between the other fields: once for all conversations of a batch, because they may be long. Returns what
 * response_format or structured_outputs asks for.
 */
function checkRules(body: ChatSettings, source: Record<string, unknown>, rules: ChatRules): WantedShape | null {
  checkStops(body.stop);
  checkStream(body, source.stream_options);
  checkLogprobs(body);
  const shape = readOutputShape(body);
  readRepetitionDetection(body.repetition_detection); // only to refuse it before the model is looked up
  checkTools(body, rules);
  checkContinuation(body);
  checkPriority(body, rules.policy);
  return shape;
}

function checkToolChoiceSpelling(source: Record<string, unknown>): void {
  const choice = source.tool_choice;
  if (choice === undefined || choice === null || choice === "none" || choice === "auto" || choice === "required") {
    return;
  }
  const named = choice as { type?: unknown; function?: { name?: unknown } };
  if (typeof choice === "object" && named.type === "function" && typeof named.function?.name === "string") return;
  throw invalidValue('tool_choice must be "none", "auto", "required" or name a function.', "tool_choice");
}

/** The most messages of a prompt that is truncated. Reading and rendering them takes a while all the same. */
const MOST_CUT_MESSAGES = 10_000;

/** Every message takes at least one token, so a conversation that cannot fit is refused before it is read. */
function checkMessageCount(messages: unknown, source: Record<string, unknown>, { contextLength }: ChatRules): void {
  const isCut = (source.truncate_prompt_tokens ?? null) !== null;
  const most = isCut ? Math.max(MOST_CUT_MESSAGES, contextLength) : contextLength;
  if (Array.isArray(messages) && messages.length > most) {
    const message =
      `This model's maximum context length is ${contextLength} tokens. However, you sent ${messages.length} messages: ` +
      "each takes at least one token.";
    throw new ServiceError("context_length_exceeded", message, { param: "messages" });
  }
}

function checkLogprobs(body: ChatSettings): void {
  if ((body.top_logprobs ?? 0) < -1) {
    throw invalidValue("top_logprobs must be 0 or more, or -1 for the whole vocabulary.", "top_logprobs");
  }
}

/** `wanted`: logprobs are on, by the request or because of its model. */
export function checkTopLogprobs(body: Pick<ChatBody, "top_logprobs">, wanted: boolean): void {
  if (!wanted && (body.top_logprobs ?? 0) !== 0) {
    throw invalidCombination("top_logprobs needs logprobs: true.", "top_logprobs");
  }
}

function checkTools(body: ChatSettings, rules: ChatRules): void {
  const choice = body.tool_choice ?? "none";
  const tools = body.tools ?? [];
  if (choice === "none") return;
  if (tools.length === 0) throw invalidCombination("tool_choice other than none needs tools.", "tool_choice");
  if (typeof choice === "object" && !tools.some((tool) => tool.function.name === choice.function.name)) {
    throw invalidCombination(`tool_choice names ${choice.function.name}, which is not in tools.`, "tool_choice");
  }
  if (rules.toolCommand !== null) {
    const wanted = typeof choice === "object" ? "a named function" : `"${choice}"`;
    const message = `tool_choice ${wanted} needs a server that parses tool calls; this one offers only "none". Start it with: ${rules.toolCommand}`;
    throw new ServiceError("tool_choice_unavailable", message, { param: "tool_choice" });
  }
}
