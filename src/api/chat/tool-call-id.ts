// The id of a parsed tool call, which the result of the call is sent back with.
import { randomUUID } from "node:crypto";

export function toolCallId(): string {
  return `chatcmpl-tool-${randomUUID().replaceAll("-", "")}`;
}
