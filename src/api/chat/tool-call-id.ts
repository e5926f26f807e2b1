// Makes the id of a parsed tool call. The client sends it back with the result.
import { randomUUID } from "node:crypto";

export function toolCallId(): string {
  return `chatcmpl-tool-${randomUUID().replaceAll("-", "")}`;
}
