// A chat template: parsed once, rendered for many conversations. Rendering is synchronous. Templates from requests are
// rendered with the same code in a separate process (template/sandbox.ts), which limits their time. Whatever goes wrong
// inside a template is a TemplateError.

import { type ChatDocument, type ChatMessage, type ChatTool, toTemplateMessages } from "./messages.ts";
import { PromptError, TemplateError } from "./prompt-error.ts";
import { GLOBALS, Raised } from "./template/globals.ts";
import { type ContentFormatOption, inspectTemplate, type TemplateFacts } from "./template/inspect.ts";
import { Template } from "./template/template.ts";
import type { Limits } from "./template/values.ts";

/** Everything a template may see. JSON-safe, so that it can be sent to another process. */
export interface RenderInput {
  messages: readonly ChatMessage[];
  tools: readonly ChatTool[] | null;
  documents: readonly ChatDocument[] | null;
  addGenerationPrompt: boolean;
  /** End the text right after the content of the last message. */
  continueFinalMessage: boolean;
  reasoningEffort: string | null;
  /** bos_token, eos_token, ... */
  specialTokens: Readonly<Record<string, string>>;
  /** Extra variables; those the template does not mention, and those set above, are left out. */
  kwargs: Readonly<Record<string, unknown>>;
}

/** Ends the content of the message to be continued; its trailing space shows whether the template trims content. */
const CONTINUATION_TAG = "\u2402CONTINUE\u2403 ";

export class ChatTemplate {
  readonly source: string;
  readonly facts: TemplateFacts;
  readonly #template: Template;

  /** `contentFormat`: how the template gets the content of messages; "auto" detects it. */
  constructor(source: string, contentFormat: ContentFormatOption = "auto") {
    this.source = source;
    try {
      this.#template = new Template(source);
      const facts = inspectTemplate(this.#template.statements);
      this.facts = contentFormat === "auto" ? facts : { ...facts, contentFormat };
    } catch (cause) {
      throw new TemplateError(`The chat template cannot be parsed: ${reasonOf(cause)}.`, { cause });
    }
  }

  /** Without `limits`, the template is trusted to end. */
  render(input: RenderInput, limits?: Limits): string {
    const messages = input.continueFinalMessage ? withTag(input.messages) : input.messages;
    const text = this.#run({ ...input, messages }, limits);
    return input.continueFinalMessage ? cutAtTag(text, lastText(input.messages)) : text;
  }

  #run(input: RenderInput, limits?: Limits): string {
    try {
      return this.#template.render(this.#variables(input), limits);
    } catch (cause) {
      // What a template raises on purpose is meant for the caller, word for word.
      const message = cause instanceof Raised ? cause.message : `The chat template failed: ${reasonOf(cause)}.`;
      throw new TemplateError(message, { cause });
    }
  }

  #variables(input: RenderInput): Record<string, unknown> {
    const knowsDeveloper = /["']developer["']/.test(this.source);
    const given: Record<string, unknown> = {
      messages: toTemplateMessages(input.messages, this.facts, knowsDeveloper),
      tools: input.tools,
      ...(input.documents === null ? {} : { documents: input.documents }),
      add_generation_prompt: input.addGenerationPrompt,
      continue_final_message: input.continueFinalMessage,
    };
    const kwargs = { ...input.kwargs };
    if (input.reasoningEffort !== null) {
      given.reasoning_effort = input.reasoningEffort;
      kwargs.enable_thinking ??= true;
    }
    const extra = Object.entries({ ...input.specialTokens, ...kwargs }).filter(
      ([name]) => this.facts.names.has(name) && !GLOBALS.has(name),
    );
    // A template may ask for documents whether there are any or not.
    return { documents: null, ...Object.fromEntries(extra), ...given };
  }
}

function lastText(messages: readonly ChatMessage[]): string {
  const text = messages.at(-1)?.texts.at(-1);
  if (text !== undefined) return text;
  const message = "continue_final_message needs a last message with content: there is nothing to continue.";
  throw new PromptError("invalid_continuation", "messages", message);
}

function withTag(messages: readonly ChatMessage[]): ChatMessage[] {
  const last = messages.at(-1)!;
  const texts = [...last.texts.slice(0, -1), lastText(messages) + CONTINUATION_TAG];
  return [...messages.slice(0, -1), { ...last, texts }];
}

/** Everything up to the tag; where the template trims content, trailing whitespace goes too. */
function cutAtTag(rendered: string, text: string): string {
  const at = rendered.lastIndexOf(CONTINUATION_TAG.trim());
  if (at < 0 || !rendered.includes(text.trim())) {
    const message = "continue_final_message: the last message does not appear in the prompt the chat template makes.";
    throw new PromptError("invalid_continuation", "messages", message);
  }
  const kept = rendered.slice(0, at);
  return rendered.startsWith(CONTINUATION_TAG, at) ? kept : kept.trimEnd();
}

function reasonOf(cause: unknown): string {
  if (cause instanceof RangeError && /call stack/.test(cause.message)) return "it is nested too deeply";
  const message = cause instanceof Error ? cause.message : String(cause);
  return message.replace(/\.$/, "");
}
