// The text side of a served model: its tokenizer and chat templates. Templates from the model and the operator are
// parsed once and rendered here, or in a separate process for long conversations. Request templates run in the sandbox. Long
// texts are tokenised in a thread.

import type { Worker } from "node:worker_threads";
import { inTurns } from "../pacing/turns.ts";
import { ChatTemplate, type RenderInput } from "./chat-template.ts";
import { EncoderThread } from "./encoding/encoder-thread.ts";
import { HfTokenizer } from "./hf-tokenizer.ts";
import { LiteralText } from "./literal-text.ts";
import type { ChatMessage } from "./messages.ts";
import { PromptError } from "./prompt-error.ts";
import type { ContentFormatOption } from "./template/inspect.ts";
import { isLongToRender, TemplateSandbox } from "./template/sandbox.ts";
import type { EncodeOptions, Tokenizer } from "./tokenizer-contract.ts";
import { readTextFiles, type TextFiles, TextFilesError } from "./tokenizer-files.ts";

export interface TextModelOptions {
  /** The operator's template, which replaces the model's default: its text, or the name of one of the model's. */
  chatTemplate?: string | null;
  /** Template variables that the operator sets for every request. The request's own take precedence. */
  chatTemplateKwargs?: Readonly<Record<string, unknown>>;
  /** Default false: control tokens spelt in messages are control tokens. */
  literalControlTokens?: boolean;
  /** How templates receive message content (default "auto"). */
  contentFormat?: ContentFormatOption;
  sandbox?: TemplateSandbox;
  /** Starts a thread that tokenises long texts. Without one, the main thread does, and gives way where it can. */
  startEncoder?: () => Worker;
}

/** In characters: 10 ms, or 50 ms where a tokenizer takes quadratic time. */
const LONG_TEXT = 8_192;

/** A client's work takes turns with that of others. */
const NO_CLIENT = "";

const LONG_RENDER_LIMIT_MS = 60_000;

export interface TextModelParts extends TextModelOptions {
  tokenizer: Tokenizer;
  specialTokens: Readonly<Record<string, string>>;
  chatTemplates: ReadonlyMap<string, string>;
  /** The contents of tokenizer_config.json. */
  tokenizerConfig?: Readonly<Record<string, unknown>>;
  /** Length of the longest token, in bytes. */
  longestToken: number;
}

export class TextModel {
  readonly tokenizer: Tokenizer;
  /** Maps bos_token, eos_token, ... to their text. */
  readonly specialTokens: Readonly<Record<string, string>>;
  readonly longestToken: number;
  readonly tokenizerConfig: Readonly<Record<string, unknown>>;
  readonly defaultKwargs: Readonly<Record<string, unknown>>;
  /** Whether what `render` returns has marks of LiteralText. */
  readonly hasMarks: boolean;
  readonly #literal = new Map<string | null, LiteralText>();
  readonly #named: ReadonlyMap<string, string>;
  readonly #serverTemplate: string | null;
  readonly #compiled = new Map<string, ChatTemplate>();
  readonly #contentFormat: ContentFormatOption;
  readonly #sandbox: TemplateSandbox;
  readonly #encoder: EncoderThread | null;
  /** Renders long conversations with trusted templates. */
  readonly #renderer = new TemplateSandbox({
    isTrusted: true,
    timeLimitMs: LONG_RENDER_LIMIT_MS,
    processes: 2,
    maxWaiting: 256,
    maxPerClient: 64,
  });

  constructor(parts: TextModelParts) {
    this.tokenizer = parts.tokenizer;
    this.specialTokens = parts.specialTokens;
    this.longestToken = parts.longestToken;
    this.tokenizerConfig = parts.tokenizerConfig ?? {};
    this.defaultKwargs = parts.chatTemplateKwargs ?? {};
    this.#named = parts.chatTemplates;
    this.#serverTemplate =
      parts.chatTemplate == null ? null : (this.#named.get(parts.chatTemplate) ?? parts.chatTemplate);
    this.#contentFormat = parts.contentFormat ?? "auto";
    this.hasMarks = parts.literalControlTokens ?? false;
    if (this.hasMarks && parts.tokenizer.addedTokens === undefined) {
      throw new TextFilesError("--literal-control-tokens needs a BPE tokenizer.");
    }
    this.#encoder = parts.startEncoder === undefined ? null : new EncoderThread(parts.startEncoder);
    this.#sandbox = parts.sandbox ?? new TemplateSandbox();
    // Report an operator's mistake at startup, not at the first request.
    if (this.#serverTemplate !== null) this.#compile(this.#serverTemplate);
  }

  /** The template for chats without tools, unless a request names another; null if none exists. */
  get defaultTemplate(): string | null {
    return this.#serverTemplate ?? this.#named.get("default") ?? null;
  }

  /**
   * Renders with the request's template (its text, or the name of one of the model's), else the operator's, else the
   * model's. `client` is the caller's id, so that one client cannot keep the others waiting.
   */
  async render(given: RenderInput, requested: string | null, client = NO_CLIENT): Promise<string> {
    const input = this.hasMarks ? await inTurns(this.#withLiteralTexts(given, requested)) : given;
    const isTrusted = requested === null || this.#isTrusted(requested);
    if (!isTrusted) return await this.#sandbox.render(requested, input, client, this.#contentFormat);
    if (!isLongToRender(input)) return this.#compile(this.#trustedSource(input, requested)).render(input);
    return await this.#renderer.render(this.#trustedSource(input, requested), input, client, this.#contentFormat);
  }

  /** Whether the template is trusted and mentions this variable. */
  rendersHere(variable: string, requested: string | null, hasTools: boolean): boolean {
    if (requested !== null && !this.#isTrusted(requested)) return false;
    const source = requested === null ? this.#templateFor(hasTools) : (this.#named.get(requested) ?? requested);
    return this.#compile(source).facts.names.has(variable);
  }

  #trustedSource(input: RenderInput, name: string | null): string {
    return name === null ? this.#templateFor(input.tools !== null) : (this.#named.get(name) ?? name);
  }

  /** Does not hold up the main thread. `client` is the caller's id, as for `render`. */
  async encode(text: string, options: EncodeOptions, client = NO_CLIENT): Promise<number[]> {
    if (this.#encoder !== null && text.length > LONG_TEXT) return this.#encoder.encode(text, options, client);
    return inTurns(this.tokenizer.encodeSteps(text, options));
  }

  /** A text of a client that no template writes, with marks where messages get them. */
  async literalText(text: string): Promise<string> {
    return this.hasMarks ? await inTurns(this.#literalFor(this.#templateFor(false)).broken(text)) : text;
  }

  *#withLiteralTexts(input: RenderInput, requested: string | null): Generator<undefined, RenderInput> {
    const isTrusted = requested === null || this.#isTrusted(requested);
    const literal = this.#literalFor(isTrusted ? this.#trustedSource(input, requested) : null);
    const messages: ChatMessage[] = [];
    for (const message of input.messages) messages.push(yield* literal.message(message));
    return { ...input, messages, documents: yield* literal.broken(input.documents) };
  }

  /** `template`: null for one from a request. */
  #literalFor(template: string | null): LiteralText {
    let literal = this.#literal.get(template);
    if (literal === undefined) {
      literal = new LiteralText(this.tokenizer.addedTokens ?? [], template);
      this.#literal.set(template, literal);
    }
    return literal;
  }

  async close(): Promise<void> {
    this.#sandbox.close();
    this.#renderer.close();
    await this.#encoder?.close();
  }

  #isTrusted(requested: string): boolean {
    return (
      this.#named.has(requested) || requested === this.#serverTemplate || [...this.#named.values()].includes(requested)
    );
  }

  #templateFor(hasTools: boolean): string {
    const forTools = this.#serverTemplate === null && hasTools ? this.#named.get("tool_use") : undefined;
    const source = forTools ?? this.defaultTemplate;
    if (source !== null) return source;
    const names = [...this.#named.keys()];
    const hint = names.length > 0 ? ` or name one of its templates: ${names.join(", ")}` : "";
    const others = "start the server with --chat-template, or use /v1/completions";
    const message = `This model has no default chat template: send chat_template with the request${hint}, ${others}.`;
    throw new PromptError("no_chat_template", null, message);
  }

  #compile(source: string): ChatTemplate {
    let template = this.#compiled.get(source);
    if (!template) {
      template = new ChatTemplate(source, this.#contentFormat);
      this.#compiled.set(source, template);
    }
    return template;
  }
}

export async function loadTextModel(folder: string, options: TextModelOptions = {}): Promise<TextModel> {
  return textModelOf(await readTextFiles(folder), options);
}

export function textModelOf(files: TextFiles, options: TextModelOptions = {}): TextModel {
  const tokenizer = new HfTokenizer(files);
  const { specialTokens, longestToken } = tokenizer;
  const { chatTemplates, tokenizerConfig } = files;
  return new TextModel({ ...options, tokenizer, specialTokens, longestToken, chatTemplates, tokenizerConfig });
}
