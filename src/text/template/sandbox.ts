// Renders chat templates in a child process with a limit on time and memory: templates from requests, which are untrusted
// programs, and the model's own for long conversations, which would hold up the main thread. It is a process rather than a
// worker thread because one huge string in a thread takes the whole service down ("Allocation failed"); here it ends the
// child. The child is kept for the next job and replaced after a fault.

import { type ChildProcess, fork } from "node:child_process";
import { compiledEntry } from "../../system/compiled-entry.ts";
import type { RenderInput } from "../chat-template.ts";
import { PromptError, type PromptErrorCode, TemplateError } from "../prompt-error.ts";
import type { ContentFormatOption } from "./inspect.ts";

export interface SandboxJob {
  source: string;
  contentFormat: ContentFormatOption;
  input: RenderInput;
  /** Whether the template's work and output are unlimited. */
  isTrusted: boolean;
}

export type SandboxMessage =
  | { kind: "ready" }
  | { kind: "text"; text: string }
  | { kind: "error"; code: PromptErrorCode; param: string | null; message: string };

export interface SandboxOptions {
  /** Default false: templates from requests. */
  isTrusted?: boolean;
  timeLimitMs?: number;
  /** Jobs that may wait while one runs. */
  maxWaiting?: number;
  /** Jobs of one client that may wait or run, so that a hostile client does not keep the others waiting. */
  maxPerClient?: number;
}

interface PendingJob extends SandboxJob {
  client: string;
  resolve(text: string): void;
  reject(error: Error): void;
}

const MAX_SOURCE_LENGTH = 262_144;
const START_LIMIT_MS = 20_000;

export class TemplateSandbox {
  readonly #isTrusted: boolean;
  readonly #timeLimitMs: number;
  readonly #maxWaiting: number;
  readonly #maxPerClient: number;
  readonly #waiting: PendingJob[] = [];
  #running: PendingJob | null = null;
  #child: ChildProcess | null = null;
  #isReady = false;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: SandboxOptions = {}) {
    this.#isTrusted = options.isTrusted ?? false;
    this.#timeLimitMs = options.timeLimitMs ?? 2_000;
    this.#maxWaiting = options.maxWaiting ?? 64;
    this.#maxPerClient = options.maxPerClient ?? 4;
  }

  /** `client`: who asks, for the limit per client. */
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
    if (this.#isClosed || this.#waiting.length >= this.#maxWaiting || this.#jobsOf(client) >= this.#maxPerClient) {
      return Promise.reject(this.#busy("Too many requests are waiting for their chat template: try again later."));
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ source, input, contentFormat, isTrusted: this.#isTrusted, client, resolve, reject });
      this.#next();
    });
  }

  close(): void {
    this.#isClosed = true;
    const closing = this.#busy("The service is shutting down.");
    for (const job of this.#waiting.splice(0)) job.reject(closing);
    this.#finish()?.reject(closing);
    this.#discard();
  }

  #jobsOf(client: string): number {
    return this.#waiting.filter((job) => job.client === client).length + (this.#running?.client === client ? 1 : 0);
  }

  #busy(message: string): PromptError {
    return new PromptError("template_busy", this.#isTrusted ? "messages" : "chat_template", message);
  }

  #next(): void {
    if (this.#running || this.#isClosed) return;
    const job = this.#waiting.shift();
    if (!job) {
      // An idle child must not keep the service from ending.
      this.#child?.unref();
      this.#child?.channel?.unref();
      return;
    }
    this.#running = job;
    this.#child ??= this.#start();
    this.#child.ref();
    this.#child.channel?.ref();
    if (this.#isReady) this.#send(job);
    else this.#limit(START_LIMIT_MS, "The process that renders chat templates did not start in time.");
  }

  #start(): ChildProcess {
    const child = fork(compiledEntry(import.meta.url, "./sandbox-child.ts"), [], {
      execArgv: ["--max-old-space-size=256"],
      env: {},
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    child.on("message", (message: SandboxMessage) => {
      if (child === this.#child) this.#receive(message);
    });
    const gone = (): void => {
      if (child === this.#child) this.#fail("The chat template ran out of memory or could not be rendered.");
    };
    child.on("exit", gone);
    child.on("error", gone);
    return child;
  }

  #send({ source, contentFormat, input, isTrusted }: PendingJob): void {
    this.#limit(this.#timeLimitMs, `The chat template took longer than ${this.#timeLimitMs / 1000} s.`);
    try {
      this.#child?.send({ source, contentFormat, input, isTrusted } satisfies SandboxJob);
    } catch (cause) {
      this.#finish()?.reject(
        new TemplateError("The conversation is nested too deeply for a chat template.", { cause }),
      );
      this.#next();
    }
  }

  #receive(message: SandboxMessage): void {
    if (message.kind === "ready") {
      this.#isReady = true;
      if (this.#running) this.#send(this.#running);
      return;
    }
    const job = this.#finish();
    if (message.kind === "text") job?.resolve(message.text);
    else if (message.code === "template_error") job?.reject(new TemplateError(message.message));
    else job?.reject(new PromptError(message.code, message.param, message.message));
    this.#next();
  }

  #fail(reason: string): void {
    this.#discard();
    this.#finish()?.reject(new TemplateError(reason));
    this.#next();
  }

  #limit(milliseconds: number, reason: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fail(reason), milliseconds);
  }

  #finish(): PendingJob | null {
    clearTimeout(this.#timer);
    const job = this.#running;
    this.#running = null;
    return job;
  }

  #discard(): void {
    const child = this.#child;
    this.#child = null;
    this.#isReady = false;
    child?.kill("SIGKILL");
  }
}
