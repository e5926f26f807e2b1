// The output of a response: parsed parts of a reply in, items out, and the events that announce them. A whole response and a
// streamed one are built here, so they have the same items.
import type { CallDelta, ReplyDelta } from "../../../text/reply-parser.ts";
import type { WireTokenLogprob } from "../../generation/reply.ts";
import { LogprobList } from "./logprob-list.ts";

type Status = "in_progress" | "completed" | "incomplete";

interface TextPart {
  type: "output_text" | "reasoning_text";
  text: string;
  annotations?: [];
  logprobs?: LogprobList;
}

export type OutputItem = { id: string; status: Status } & (
  | { type: "reasoning"; summary: []; content: TextPart[]; encrypted_content: null }
  | { type: "message"; role: "assistant"; content: TextPart[] }
  | { type: "function_call"; call_id: string; name: string; arguments: string }
  | { type: "custom_tool_call"; call_id: string; name: string; input: string }
);

/** Takes an event: its type and its other fields. */
export type Emit = (type: string, fields: Readonly<Record<string, unknown>>) => void;

export interface OutputOptions {
  /** 32 hexadecimal digits of the response's id. Ids of items contain it, so that an item can be found again. */
  key: string;
  logprobs: boolean;
  /** false: only the first tool call is shown. */
  parallelToolCalls: boolean;
}

const PREFIXES = { reasoning: "rs", message: "msg", function_call: "fc", custom_tool_call: "ctc" } as const;

/** A token whose text is not in an item yet, or the rest of its text. `logprob`: null when it has been shown. */
interface HeldToken {
  text: string;
  logprob: WireTokenLogprob | null;
}

export class OutputItems {
  readonly items: OutputItem[] = [];
  /** Of all items. */
  readonly lists: LogprobList[] = [];
  readonly #options: OutputOptions;
  readonly #emit: Emit;
  /** Text of the open item that was not announced yet. */
  #unsent = "";
  #unsentLogprobs: WireTokenLogprob[] = [];
  /** Parsers hold text back, and tokens inside a character have none. So tokens wait for the text that they spell. */
  #held: HeldToken[] = [];
  /** Index of the call that the open item is. */
  #call = -1;

  constructor(options: OutputOptions, emit: Emit) {
    this.#options = options;
    this.#emit = emit;
  }

  /** Characters that `flush` would announce. */
  get unsent(): number {
    return this.#unsent.length + 64 * this.#unsentLogprobs.length;
  }

  add(part: ReplyDelta): void {
    if (part.kind !== "tool_call") {
      const item = this.#opened(part.kind === "reasoning" ? "reasoning" : "message");
      item.content[0]!.text += part.text;
      this.#unsent += part.text;
      if (item.type === "message") this.#addLogprobs(this.#spelling(part.text));
      return;
    }
    this.#held = [];
    if (part.index > 0 && !this.#options.parallelToolCalls) return;
    if (part.name !== undefined) this.#openCall(part.index, { ...part, name: part.name });
    const item = this.#open;
    if (this.#call !== part.index) return;
    if (item?.type === "function_call") item.arguments += part.argumentsText ?? "";
    else if (item?.type === "custom_tool_call") item.input += part.input ?? "";
    else return;
    this.#unsent += part.input ?? part.argumentsText ?? "";
  }

  /** Tokens that are not reasoning, before the parts that they lead to. Those that spell the message get their place there. */
  hold(logprobs: readonly WireTokenLogprob[]): void {
    if (!this.#options.logprobs) return;
    for (const logprob of logprobs) this.#held.push({ text: logprob.token, logprob });
  }

  /** Announces what was added since the last call. */
  flush(): void {
    const item = this.#open;
    if (item === undefined || (this.#unsent === "" && this.#unsentLogprobs.length === 0)) return;
    const delta = this.#unsent;
    const logprobs = this.#unsentLogprobs;
    this.#unsent = "";
    this.#unsentLogprobs = [];
    if (item.type === "function_call") this.#event("response.function_call_arguments.delta", { delta });
    else if (item.type === "custom_tool_call") this.#event("response.custom_tool_call_input.delta", { delta });
    else if (item.type === "reasoning") this.#event("response.reasoning_text.delta", { content_index: 0, delta });
    else this.#event("response.output_text.delta", { content_index: 0, delta, logprobs });
  }

  /** The output is over. A reply that says nothing is an empty message. */
  end(status: "completed" | "incomplete"): void {
    this.#addLogprobs(this.#held.splice(0)); // such as the one that ended the output
    if (status === "completed" && !this.items.some(({ type }) => type !== "reasoning")) this.#opened("message");
    this.#close(status);
  }

  #addLogprobs(tokens: readonly HeldToken[]): void {
    const item = this.#open;
    if (item?.type !== "message") return;
    const logprobs = tokens.flatMap(({ logprob }) => logprob ?? []);
    item.content[0]!.logprobs!.add(logprobs);
    this.#unsentLogprobs.push(...logprobs);
  }

  /** Takes the tokens that spell `text`, and forgets those before them: markers, and blanks that parsers leave out. */
  #spelling(text: string): HeldToken[] {
    const from = this.#held
      .map((token) => token.text)
      .join("")
      .indexOf(text);
    if (from < 0) return this.#held.splice(0); // a character that is none
    const to = from + text.length;
    const spelling: HeldToken[] = [];
    const rest: HeldToken[] = [];
    let at = 0;
    for (const token of this.#held) {
      const start = at;
      at += token.text.length;
      if (start >= to) rest.push(token);
      else spelling.push(token);
      if (start < to && at > to) rest.push({ text: token.text.slice(to - start), logprob: null });
      if (token.text !== "" && at <= from) spelling.length = 0;
    }
    this.#held = rest;
    return spelling;
  }

  get #open(): OutputItem | undefined {
    const last = this.items.at(-1);
    return last?.status === "in_progress" ? last : undefined;
  }

  #opened(type: "reasoning" | "message"): Extract<OutputItem, { type: "reasoning" | "message" }> {
    const open = this.#open;
    if (open?.type === type) return open;
    this.#close("completed");
    const empty = { id: this.#id(type), status: "in_progress" } as const;
    const item: Extract<OutputItem, { type: "reasoning" | "message" }> =
      type === "reasoning"
        ? { ...empty, type, summary: [], content: [], encrypted_content: null }
        : { ...empty, type, role: "assistant", content: [] };
    this.#announce(item);
    item.content.push(
      type === "reasoning"
        ? { type: "reasoning_text", text: "" }
        : { type: "output_text", text: "", annotations: [], logprobs: this.#newList() },
    );
    this.#event("response.content_part.added", { content_index: 0, part: item.content[0] });
    return item;
  }

  #newList(): LogprobList {
    const list = new LogprobList(this.lists.length);
    this.lists.push(list);
    return list;
  }

  /** `own`: the id that the model gave the call. */
  #openCall(index: number, { id: own, name, input }: CallDelta & { name: string }): void {
    this.#close("completed");
    this.#call = index;
    const id = this.#id(input === undefined ? "function_call" : "custom_tool_call");
    const call = { id, status: "in_progress", call_id: own ?? id.replace(/^[a-z]+/, "call"), name } as const;
    this.#announce(
      input === undefined
        ? { ...call, type: "function_call", arguments: "" }
        : { ...call, type: "custom_tool_call", input: "" },
    );
  }

  #announce(item: OutputItem): void {
    this.items.push(item);
    this.#emit("response.output_item.added", { output_index: this.items.length - 1, item });
  }

  #close(status: "completed" | "incomplete"): void {
    const item = this.#open;
    if (item === undefined) return;
    this.flush();
    if (item.type === "function_call") {
      this.#event("response.function_call_arguments.done", { name: item.name, arguments: item.arguments });
    } else if (item.type === "custom_tool_call") {
      this.#event("response.custom_tool_call_input.done", { input: item.input });
    } else {
      const part = item.content[0]!;
      const { text } = part;
      if (item.type === "reasoning") this.#event("response.reasoning_text.done", { content_index: 0, text });
      else this.#event("response.output_text.done", { content_index: 0, text, logprobs: part.logprobs });
      this.#event("response.content_part.done", { content_index: 0, part });
    }
    item.status = status;
    this.#emit("response.output_item.done", { output_index: this.items.length - 1, item });
  }

  /** An event about the open item. */
  #event(type: string, fields: Readonly<Record<string, unknown>>): void {
    this.#emit(type, { item_id: this.items.at(-1)!.id, output_index: this.items.length - 1, ...fields });
  }

  #id(type: OutputItem["type"]): string {
    return `${PREFIXES[type]}_${this.#options.key}_${this.items.length}`;
  }
}
