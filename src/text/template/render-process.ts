// A child process that renders chat templates, one at a time, with a limit on time and memory. It starts with the first job,
// is kept for the next ones, and is replaced after a fault. It is a process rather than a worker thread because one huge
// string in a thread takes the whole service down ("Allocation failed"); here it ends the child.

import { type ChildProcess, fork } from "node:child_process";
import { compiledEntry } from "../../system/package.ts";
import type { RenderInput } from "../chat-template.ts";
import { PromptError, type PromptErrorCode, TemplateError } from "../prompt-error.ts";
import type { ContentFormatOption } from "./inspect.ts";

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

export class RenderProcess {
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
