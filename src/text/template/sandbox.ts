// Renders chat templates outside the main thread: templates from requests, which are untrusted programs, and the model's own for
// long conversations, which would hold up everybody. Clients take turns, so that one client's long chats do not keep the others waiting.

import { FairQueue } from "../../pacing/fair-queue.ts";
import type { RenderInput } from "../chat-template.ts";
import { PromptError, TemplateError } from "../prompt-error.ts";
import type { ContentFormatOption } from "./inspect.ts";
import { type RenderJob, RenderProcess } from "./render-process.ts";

export interface SandboxOptions {
  /** Default false: templates from requests. */
  isTrusted?: boolean;
  timeLimitMs?: number;
  /** Templates rendered at once, each in a process of its own. With more than one, a client has one less at most. */
  processes?: number;
  /** Jobs that may wait. */
  maxWaiting?: number;
  /** Jobs of one client that may wait. */
  maxPerClient?: number;
}

interface WaitingJob extends RenderJob {
  resolve(text: string): void;
  reject(error: Error): void;
}

const MAX_SOURCE_LENGTH = 262_144;

export class TemplateSandbox {
  readonly #isTrusted: boolean;
  readonly #maxWaiting: number;
  readonly #queue: FairQueue<WaitingJob>;
  readonly #processes: readonly RenderProcess[];
  #waiting = 0;
  #isClosed = false;

  constructor(options: SandboxOptions = {}) {
    const { processes = 1, timeLimitMs = 2_000, maxPerClient = 4 } = options;
    this.#isTrusted = options.isTrusted ?? false;
    this.#maxWaiting = options.maxWaiting ?? 64;
    this.#queue = new FairQueue({ waitingPerOwner: maxPerClient, runningPerOwner: Math.max(1, processes - 1) });
    this.#processes = Array.from({ length: processes }, () => new RenderProcess(timeLimitMs));
  }

  /** `client`: whose turn it takes. */
  render(
    source: string,
    input: RenderInput,
    client = "",
    contentFormat: ContentFormatOption = "auto",
  ): Promise<string> {
    if (!this.#isTrusted && source.length > MAX_SOURCE_LENGTH) {
      const message = `A chat template in a request must not be longer than ${MAX_SOURCE_LENGTH} characters.`;
      return Promise.reject(new TemplateError(message));
    }
    return new Promise((resolve, reject) => {
      const job = { source, input, contentFormat, isTrusted: this.#isTrusted, resolve, reject };
      if (this.#isClosed || this.#waiting >= this.#maxWaiting || !this.#queue.add(client, job)) {
        reject(this.#busy("Too many requests are waiting for their chat template: try again later."));
        return;
      }
      this.#waiting++;
      this.#next();
    });
  }

  close(): void {
    this.#isClosed = true;
    const closing = this.#busy("The service is shutting down.");
    for (const job of this.#queue.removeAll()) job.reject(closing);
    for (const process of this.#processes) process.close(closing);
  }

  #busy(message: string): PromptError {
    return new PromptError("template_busy", this.#isTrusted ? "messages" : "chat_template", message);
  }

  #next(): void {
    const free = this.#processes.find((process) => !process.busy);
    const turn = free && !this.#isClosed ? this.#queue.take() : undefined;
    if (free === undefined || turn === undefined) return;
    this.#waiting--;
    const { resolve, reject, ...job } = turn.item;
    const from = performance.now();
    const ended = (): void => {
      turn.end(performance.now() - from);
      this.#next();
    };
    free.render(job).then(resolve, reject).finally(ended);
  }
}
