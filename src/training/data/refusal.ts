// Where in the submitted data something is wrong. Messages are rendered from a list of elements, index for index, so the
// path of a message that a chat template refuses is that of an element under another name.

import type { PromptError } from "../../text/prompt-error.ts";
import type { History } from "./trajectory.ts";

/** Where a history was sent. */
export interface Places {
  /** Path of the list of its elements, for example "messages_and_choices". */
  elements: string;
  element(index: number): string;
}

/** `elements`: the path of the list where they were not captured. */
export function placesOf({ items, requestAt }: History, elements: string): Places {
  const list = requestAt === undefined ? elements : `${requestAt}.messages`;
  return {
    elements: list,
    element(index) {
      const item = items[index]!;
      return ("choice" in item ? item.at : undefined) ?? `${list}[${index}]`;
    },
  };
}

export function refusalText({ param, message }: PromptError, { elements, element }: Places): string {
  const [, index, field] = /^messages\.(\d+)(.*)$/.exec(param ?? "") ?? [];
  return `${index === undefined ? elements : `${element(Number(index))}${field}`}: ${message}`;
}
