// Renders chat templates outside the main thread: templates from requests, which are untrusted programs, and the model's own for
// long conversations, which would hold up everybody. Clients take turns, so that one client's long chats do not keep the others waiting.

import { type ChildProcess, fork } from "node:child_process";
import { isJsonObject } from "../../json/json.ts";
import { FairQueue } from "../../pacing/fair-queue.ts";
import { compiledEntry } from "../../system/package.ts";
import type { RenderInput } from "../chat-template.ts";
import { PromptError, type PromptErrorCode, TemplateError } from "../prompt-error.ts";
import type { ContentFormatOption } from "./inspect.ts";

// How much a template is given, to tell before rendering whether it may take long.

/** Some templates take quadratic time: 400 ms for 1,000 messages, 3 ms for 50. */
const LONG_CONVERSATION = 64;
/** Numbers, texts, lists and objects: 10 ms where a template prints them. */
const MANY_VALUES = 2_000;
/** Characters of all texts. */
const LONG_TEXTS = 262_144;

/** Whether rendering may take longer than the main thread can wait. Looks at no more than it needs to know. */
export function isLongToRender({ messages, tools, documents, kwargs }: RenderInput): boolean {
  if (messages.length >= LONG_CONVERSATION) return true;
  let values = 0;
  let characters = 0;
  const waiting: unknown[] = [messages, tools, documents, kwargs];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === "string") characters += value.length;
    const inner = Array.isArray(value) ? value : isJsonObject(value) ? Object.values(value) : [];
    values += inner.length;
    if (values > MANY_VALUES || characters > LONG_TEXTS) return true;
    for (const item of inner) waiting.push(item);
  }
  return false;
}

// A child process that renders chat templates, one at a time, with a limit on time and memory. It starts with the first job,
// is kept for the next ones, and is replaced after a fault. It is a process rather than a worker thread because one huge
// string in a thread takes the whole service down ("Allocation failed"); here it ends the child.

export interface RenderJob {
  source: string;
  contentFormat: ContentFormatOption;
  input: RenderInput;
  /** Whether the template's work and output are unlimited. */
  isTrusted: boolean;
}

export type RenderMessage =
  | { kind: "ready" }
  | { kind: "text"; text: string }
  | { kind: "error"; code: PromptErrorCode; param: string | null; message: string };

interface Running {
  job: RenderJob;
  resolve(text: string): void;
  reject(error: Error): void;
}

const START_LIMIT_MS = 20_000;

class RenderProcess {
  readonly #timeLimitMs: number;
  #running: Running | null = null;
  #child: ChildProcess | null = null;
  #isReady = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(timeLimitMs: number) {
    this.#timeLimitMs = timeLimitMs;
  }

  get busy(): boolean {
    return this.#running !== null;
  }

  /** Only while it is not busy. */
  render(job: RenderJob): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#running = { job, resolve, reject };
      this.#child ??= this.#start();
      this.#child.ref();
      this.#child.channel?.ref();
      if (this.#isReady) this.#send(job);
      else this.#limit(START_LIMIT_MS, "The process that renders chat templates did not start in time.");
    });
  }

  /** The job that runs fails with `reason`. */
  close(reason: Error): void {
    this.#discard();
    this.#finish()?.reject(reason);
  }

  #start(): ChildProcess {
    const child = fork(compiledEntry(import.meta.url, "./sandbox-child.ts"), [], {
      execArgv: ["--max-old-space-size=256"],
      env: {},
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    child.on("message", (message: RenderMessage) => {
      if (child === this.#child) this.#receive(message);
    });
    const gone = (): void => {
      if (child === this.#child) this.#fail("The chat template ran out of memory or could not be rendered.");
    };
    child.on("exit", gone);
    child.on("error", gone);
    return child;
  }

  #send(job: RenderJob): void {
    this.#limit(this.#timeLimitMs, `The chat template took longer than ${this.#timeLimitMs / 1000} s.`);
    try {
      this.#child?.send(job);
    } catch (cause) {
      this.#finish()?.reject(
        new TemplateError("The conversation is nested too deeply for a chat template.", { cause }),
      );
    }
  }

  #receive(message: RenderMessage): void {
    if (message.kind === "ready") {
      this.#isReady = true;
      if (this.#running) this.#send(this.#running.job);
      return;
    }
    const running = this.#finish();
    if (message.kind === "text") running?.resolve(message.text);
    else if (message.code === "template_error") running?.reject(new TemplateError(message.message));
    else running?.reject(new PromptError(message.code, message.param, message.message));
  }

  #fail(reason: string): void {
    this.close(new TemplateError(reason));
  }

  #limit(milliseconds: number, reason: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fail(reason), milliseconds);
  }

  #finish(): Running | null {
    clearTimeout(this.#timer);
    // An idle child must not keep the service from ending.
    this.#child?.unref();
    this.#child?.channel?.unref();
    const running = this.#running;
    this.#running = null;
    return running;
  }

  #discard(): void {
    const child = this.#child;
    this.#child = null;
    this.#isReady = false;
    child?.kill("SIGKILL");
  }
}

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
