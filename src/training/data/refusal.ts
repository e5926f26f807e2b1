// What a chat template refuses, in the words of the submitted data: messages are rendered from a list of elements, index
// for index, so the path of a message is that of an element under another name.

import type { PromptError } from "../../text/prompt-error.ts";

/** `elements`: the path of the list the messages came from, for example "messages_and_choices". */
export function refusalText({ param, message }: PromptError, elements: string): string {
  const [, index, field] = /^messages\.(\d+)(.*)$/.exec(param ?? "") ?? [];
  if (index !== undefined) return `${elements}[${index}]${field}: ${message}`;
  const tools = param?.startsWith("tools") ? param : null;
  return `${tools === null ? elements : elements.replace(/[^.]+$/, tools)}: ${message}`;
}
