// What a reply is made of: plain text, reasoning and tool calls, parsed out of the generated text as it streams.
// A parser sees the text after stop-string handling, in pieces of any size, and gives the same deltas in total
// whatever the pieces were. The plain parser (no reasoning, no tools) passes text through.

export type ReplyDelta =
  | { kind: "content"; text: string }
  | { kind: "reasoning"; text: string }
  /** `name` comes once and whole, with the first delta of a call; `argumentsText` comes in fragments of JSON text. */
  | { kind: "tool_call"; index: number; name?: string; argumentsText?: string };

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
