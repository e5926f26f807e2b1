// The prompts of one conversation, without work that cannot matter. A sequence longer than the limit is never trained,
// so only the first limit + 1 tokens of a longer prompt are made. Each prompt renders the whole conversation again, so
// once all later prompts are known to begin with the same limit + 1 tokens, they are not rendered at all.

import type { GiveWay } from "../../pacing/turns.ts";
import type { ChatTool } from "../../text/messages.ts";
import { startsWith } from "./token-sequence.ts";
import type { ChatEncoder, HistoryMessage } from "./trajectory.ts";

export interface PromptsOptions {
  messages: readonly HistoryMessage[];
  tools: readonly ChatTool[] | null;
  /** Indices of the messages whose prompts are needed, in order. */
  elements: readonly number[];
  encoder: ChatEncoder;
  /** Longest prompt of interest, in tokens. */
  limit: number;
  giveWay: GiveWay;
}

export class Prompts {
  readonly #options: PromptsOptions;
  /** The beginnings of the last prompts; null = not rendered yet. */
  #endings: readonly number[][] | null = null;
  /** The beginning of every prompt from here on. */
  #beginning: readonly number[] | null = null;

  constructor(options: PromptsOptions) {
    this.#options = options;
  }

  /** Ids of the conversation before this message, or the first limit + 1 of them if there are more. */
  async before(element: number): Promise<readonly number[]> {
    if (this.#beginning) return this.#beginning;
    await this.#options.giveWay();
    const ids = await this.#encode(element);
    if (ids.length <= this.#options.limit) return ids;
    this.#endings ??= await this.#lookAhead(element);
    if (this.#endings.every((ending) => startsWith(ending, ids))) this.#beginning = ids;
    return ids;
  }

  /**
   * Renders the last prompt after each role. A template may drop part of a message once others follow (such as thoughts
   * before the last question). It brings nothing back, unless that depends on the role of the last message. So whatever
   * a prompt shares with these last ones, it shares with all prompts in between. Every message takes at least one
   * token, so prompts with more messages than the limit are not needed.
   */
  async #lookAhead(from: number): Promise<number[][]> {
    const { messages, elements, limit, giveWay } = this.#options;
    const later = elements.filter((element) => element > from && element <= limit);
    const lastBehind = new Map(later.map((element) => [messages[element - 1]?.role, element]));
    const endings: number[][] = [];
    for (const element of lastBehind.values()) {
      await giveWay();
      try {
        endings.push(await this.#encode(element));
      } catch {
        // the template refuses it; that is reported when its turn comes
        endings.push([]);
      }
    }
    return endings;
  }

  async #encode(element: number): Promise<number[]> {
    const { messages, tools, encoder, limit } = this.#options;
    const ids = await encoder.encodePrompt(messages.slice(0, element), tools, limit);
    return ids.length > limit ? ids.slice(0, limit + 1) : ids;
  }
}
