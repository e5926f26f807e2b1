// What one choice of a streamed chat has produced since its last chunk. Deltas merge, so a slow reader gets few large chunks
// instead of many small ones.
import type { Static } from "typebox";
import type { CallDelta, ReplyDelta } from "../../text/reply-parser.ts";
import type { ChoiceDelta, ChoiceEnd } from "../run/choice-output.ts";
import type { ToolCallDelta } from "./chat.response-schema.ts";
import { toolCallId } from "./tool-call-id.ts";

export class PendingChunk {
  content = "";
  reasoning = "";
  readonly toolCalls: Static<typeof ToolCallDelta>[] = [];
  readonly tokenIds: number[] = [];
  /** JSON of the entries, without brackets. */
  logprobs = "";
  reasoningTokens = 0;
  end: ChoiceEnd | null = null;
  /** There is something to send. */
  dirty = false;

  /** `parts`: the parts of the delta that may be shown. */
  add(delta: ChoiceDelta, parts: readonly ReplyDelta[]): void {
    for (const part of parts) this.#addPart(part);
    this.tokenIds.push(...delta.tokenIds);
    for (const entry of delta.logprobs) this.logprobs += `${this.logprobs === "" ? "" : ","}${JSON.stringify(entry)}`;
    this.reasoningTokens += delta.reasoningTokens;
    this.end = delta.end ?? this.end;
    this.dirty ||= delta.end !== null || parts.length > 0;
  }

  #addPart(part: ReplyDelta): void {
    if (part.kind === "tool_call") this.#addToolCall(part);
    else this[part.kind] += part.text;
  }

  /** Joins the fragments of a call. Its id and type go with the name, which comes first. */
  #addToolCall(part: CallDelta): void {
    let call = this.toolCalls.find((known) => known.index === part.index);
    if (call === undefined) {
      call = { index: part.index };
      this.toolCalls.push(call);
    }
    const isCustom = part.input !== undefined;
    if (part.name !== undefined) {
      call.id = part.id ?? toolCallId();
      call.type = isCustom ? "custom" : "function";
    }
    const name = part.name === undefined ? {} : { name: part.name };
    if (isCustom) call.custom = { ...call.custom, ...name, input: (call.custom?.input ?? "") + part.input };
    else {
      const text = (call.function?.arguments ?? "") + (part.argumentsText ?? "");
      call.function = { ...call.function, ...name, arguments: text };
    }
  }
}

/** Roughly how many bytes a delta adds to the output that waits, besides its log-probabilities. */
export function sizeOf(delta: ChoiceDelta): number {
  let size = delta.tokenIds.length * 8;
  for (const part of delta.parts) {
    size += part.kind === "tool_call" ? (part.input ?? part.argumentsText ?? "").length + 64 : part.text.length;
  }
  return size;
}
