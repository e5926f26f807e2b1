// Parses plain text, reasoning and tool calls out of the generated text as it streams. A parser gets the text after
// stop-string handling, in pieces of any size. The sum of its deltas does not depend on the pieces. The plain parser (no
// reasoning, no tools) passes text through.

export type ReplyDelta =
  | { kind: "content"; text: string }
  | { kind: "reasoning"; text: string }
  /**
   * `name` comes once and whole, with the first delta of a call, and so does the model's own `id` if it has one.
   * `argumentsText` comes in fragments of JSON text. Calls of custom tools have an `input` instead, a text in fragments.
   */
  | { kind: "tool_call"; index: number; name?: string; id?: string; argumentsText?: string; input?: string };

export type CallDelta = Extract<ReplyDelta, { kind: "tool_call" }>;

export interface ReplyParser {
  push(text: string): ReplyDelta[];
  /** The end of the text: whatever was held back. */
  finish(): ReplyDelta[];
}

export class PlainReplyParser implements ReplyParser {
  push(text: string): ReplyDelta[] {
    return text === "" ? [] : [{ kind: "content", text }];
  }

  finish(): ReplyDelta[] {
    return [];
  }
}
