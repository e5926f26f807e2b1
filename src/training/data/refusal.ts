// Says where in the submitted data something is wrong. Messages are rendered from a list of elements with the same
// indices, so the path of a refused message translates to the path of its element.

import type { PromptError } from "../../text/prompt-error.ts";
import type { History } from "./trajectory.ts";

/** Where the elements of a history are in the request. */
export interface Places {
  /** Path of the list of its elements, for example "messages_and_choices". */
  elements: string;
  element(index: number): string;
}

/** `elements`: path of the list, unless the history is a captured call. */
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
