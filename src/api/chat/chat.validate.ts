// Rules between fields of a chat request. The first group looks at the body as it came (some rules care about the
// spelling), the second at the values as read. Bounds of single sampling parameters are in sampling-bounds.ts.
import type { Config } from "../../config/options.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { readOutputShape, type WantedShape } from "../request/constraint.wire.ts";
import { readBody } from "../request/read-body.ts";
import { readRepetitionDetection } from "../request/sampling-params.ts";
import { type ChatBody, ChatRequest } from "./chat.schema.ts";

export interface ChatRules {
  /** The server parses tool calls, so tool_choice may be other than none. */
  toolChoice: boolean;
  policy: "priority" | "fcfs";
  /** In tokens. */
  contextLength: number;
}

export interface ValidatedChat {
  body: ChatBody;
  /** What response_format or structured_outputs asks for. */
  shape: WantedShape | null;
  /** Unknown fields that were ignored. */
  ignored: string[];
}

export function validateChat(raw: unknown, rules: ChatRules): ValidatedChat {
  const source = (typeof raw === "object" && raw !== null ? raw : {}) as Record<string, unknown>;
  checkLogprobSpelling(source);
  checkToolChoiceSpelling(source);
  checkMessageCount(source, rules);
  const { value: body, ignored } = readBody(ChatRequest, raw ?? null);
  if (body.messages.length === 0) throw refuse("invalid_value", "messages must have at least one message.", "messages");
  checkStops(body.stop);
  checkStream(body, source.stream_options);
  checkLogprobs(body);
  const shape = readOutputShape(body);
  readRepetitionDetection(body.repetition_detection); // for its refusals: they come before those of the model
  checkTools(body, rules);
  checkContinuation(body);
  checkPriority(body, rules);
  return { body, shape, ignored };
}

function refuse(code: "invalid_value" | "invalid_combination", message: string, param: string | null): ServiceError {
  return new ServiceError(code, message, { param });
}

/** Numbers written as strings are accepted everywhere but here. */
export function checkLogprobSpelling(source: Record<string, unknown>): void {
  for (const field of ["top_logprobs", "prompt_logprobs"]) {
    if (typeof source[field] === "string") {
      throw refuse("invalid_value", `${field} must be an integer, not a string.`, field);
    }
  }
}

function checkToolChoiceSpelling(source: Record<string, unknown>): void {
  const choice = source.tool_choice;
  if (choice === undefined || choice === null || choice === "none" || choice === "auto" || choice === "required") {
    return;
  }
  const named = choice as { type?: unknown; function?: { name?: unknown } };
  if (typeof choice === "object" && named.type === "function" && typeof named.function?.name === "string") return;
  throw refuse("invalid_value", 'tool_choice must be "none", "auto", "required" or name a function.', "tool_choice");
}

/** Of which the last tokens are kept: reading and rendering them takes a while all the same. */
const MOST_CUT_MESSAGES = 10_000;

/** Every message takes a token at least: a conversation that cannot fit is not worth reading, which takes a while. */
function checkMessageCount(source: Record<string, unknown>, { contextLength }: ChatRules): void {
  const isCut = (source.truncate_prompt_tokens ?? null) !== null;
  const most = isCut ? Math.max(MOST_CUT_MESSAGES, contextLength) : contextLength;
  const { messages } = source;
  if (Array.isArray(messages) && messages.length > most) {
    const message = `${messages.length} messages do not fit into a context of ${contextLength} tokens: send fewer.`;
    throw new ServiceError("context_length_exceeded", message, { param: "messages" });
  }
}

/** `options`: stream_options as they came, with what nobody knows. */
export function checkStream(body: Pick<ChatBody, "stream" | "prompt_logprobs">, options: unknown): void {
  if (Object.keys(options ?? {}).length > 0 && body.stream !== true) {
    throw refuse("invalid_combination", "stream_options needs stream: true.", "stream_options");
  }
  const prompt = body.prompt_logprobs ?? 0;
  if (prompt !== 0 && body.stream === true) {
    throw refuse("invalid_combination", "prompt_logprobs is not available with stream: true.", "prompt_logprobs");
  }
  if (prompt < -1) {
    throw refuse(
      "invalid_value",
      "prompt_logprobs must be 0 or more, or -1 for the whole vocabulary.",
      "prompt_logprobs",
    );
  }
}

/** An empty stop string would match everywhere. */
export function checkStops(stop: ChatBody["stop"]): void {
  if (stop !== undefined && stop !== null && [stop].flat().includes("")) {
    throw refuse("invalid_value", "stop must not contain an empty string.", null);
  }
}

function checkLogprobs(body: ChatBody): void {
  if ((body.top_logprobs ?? 0) < -1) {
    throw refuse("invalid_value", "top_logprobs must be 0 or more, or -1 for the whole vocabulary.", "top_logprobs");
  }
}

/** `wanted`: logprobs are on, by the request or because of its model. */
export function checkTopLogprobs(body: Pick<ChatBody, "top_logprobs">, wanted: boolean): void {
  if (!wanted && (body.top_logprobs ?? 0) !== 0) {
    throw refuse("invalid_combination", "top_logprobs needs logprobs: true.", "top_logprobs");
  }
}

function checkTools(body: ChatBody, rules: ChatRules): void {
  const choice = body.tool_choice ?? "none";
  const tools = body.tools ?? [];
  if (choice === "none") return;
  if (tools.length === 0) {
    throw refuse("invalid_combination", "tool_choice other than none needs tools.", "tool_choice");
  }
  if (typeof choice === "object" && !tools.some((tool) => tool.function.name === choice.function.name)) {
    throw refuse(
      "invalid_combination",
      `tool_choice names ${choice.function.name}, which is not in tools.`,
      "tool_choice",
    );
  }
  if (!rules.toolChoice) {
    const wanted = typeof choice === "object" ? "a named function" : `"${choice}"`;
    const message =
      `tool_choice ${wanted} needs a server with a tool-call parser ` +
      '(--enable-auto-tool-choice and --tool-call-parser); this one offers only "none".';
    throw new ServiceError("tool_choice_unavailable", message, { param: "tool_choice" });
  }
}

export function checkContinuation(body: Pick<ChatBody, "continue_final_message" | "add_generation_prompt">): void {
  if (body.continue_final_message === true && (body.add_generation_prompt ?? true)) {
    const message =
      "continue_final_message cannot be used together with add_generation_prompt (true by default): send add_generation_prompt: false.";
    throw refuse("invalid_combination", message, null);
  }
}

/** A template may come as a field or among the template's own variables. */
export function checkTemplateTrust(
  body: Pick<ChatBody, "chat_template" | "chat_template_kwargs">,
  { trustRequestChatTemplate }: Pick<Config, "trustRequestChatTemplate">,
): void {
  const bringsOne = (body.chat_template ?? null) !== null || body.chat_template_kwargs?.chat_template !== undefined;
  if (bringsOne && !trustRequestChatTemplate) {
    const message = "This server does not accept chat templates from requests (--trust-request-chat-template).";
    throw new ServiceError("template_refused", message, { param: "chat_template" });
  }
}

export function checkPriority(body: Pick<ChatBody, "priority">, rules: Pick<ChatRules, "policy">): void {
  if (rules.policy === "fcfs" && (body.priority ?? 0n) !== 0n) {
    const message = "priority must be 0: this server schedules first come, first served.";
    throw new ServiceError("priority_unavailable", message, { param: "priority" });
  }
}
