// The prompts of one conversation, each no further than it can matter. A sequence longer than the limit is never trained,
// so of a longer prompt only the first limit + 1 tokens are made. And because each prompt renders the whole conversation
// again, later ones are not rendered once the last of them are seen to begin with the same limit + 1 tokens.

import type { GiveWay } from "../../pacing/give-way.ts";
import type { ChatTool } from "../../text/messages.ts";
import type { ChatEncoder } from "./chat-encoder.ts";
import { startsWith } from "./token-sequence.ts";
import type { HistoryMessage } from "./trajectory.ts";

export interface PromptsOptions {
  messages: readonly HistoryMessage[];
  tools: readonly ChatTool[] | null;
  /** Indices of the messages whose prompts will be asked for, in order. */
  elements: readonly number[];
  encoder: ChatEncoder;
  /** Longest prompt of interest, in tokens. */
  limit: number;
  giveWay: GiveWay;
}

export class Prompts {
  readonly #options: PromptsOptions;
  /** How the last prompts begin; null = not looked at yet. */
  #endings: readonly number[][] | null = null;
  /** How every prompt from here on begins. */
  #beginning: readonly number[] | null = null;

  constructor(options: PromptsOptions) {
    this.#options = options;
  }

  /** Ids of the conversation before this message; of a prompt longer than the limit, the first limit + 1. */
  async before(element: number): Promise<readonly number[]> {
    if (this.#beginning) return this.#beginning;
    await this.#options.giveWay();
    const ids = this.#encode(element);
    if (ids.length <= this.#options.limit) return ids;
    this.#endings ??= await this.#lookAhead(element);
    if (this.#endings.every((ending) => startsWith(ending, ids))) this.#beginning = ids;
    return ids;
  }

  /**
   * Templates may render less of a message once others follow it (thoughts before the last question), but what they
   * have left out they do not bring back, unless by the role of the last message. So what a prompt has in common with
   * the last one behind each role, all prompts in between have too. Every message takes a token at least: prompts of
   * more messages than the limit need no look.
   */
  async #lookAhead(from: number): Promise<number[][]> {
    const { messages, elements, limit, giveWay } = this.#options;
    const later = elements.filter((element) => element > from && element <= limit);
    const lastBehind = new Map(later.map((element) => [messages[element - 1]?.role, element]));
    const endings: number[][] = [];
    for (const element of lastBehind.values()) {
      await giveWay();
      try {
        endings.push(this.#encode(element));
      } catch {
        // the template refuses it: found again when its turn comes, if nothing else is wrong before it
        endings.push([]);
      }
    }
    return endings;
  }

  #encode(element: number): number[] {
    const { messages, tools, encoder, limit } = this.#options;
    const ids = encoder.encodePrompt(messages.slice(0, element), tools, limit);
    return ids.length > limit ? ids.slice(0, limit + 1) : ids;
  }
}
