// The process that owns a GPU: a command that dials back to a Unix socket of ours, proves by a number from its
// environment that we started it, and then exchanges frames (frames.ts). Not over stdin and stdout: libraries print.
// When it ends, whatever the reason, it does not come back; who started it decides what follows.

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OperatorError } from "../../errors/faults.ts";
import { childEnvironment, howItEnded, LastWords, signalGroup } from "../../system/child-process.ts";
import { type ArraysToSend, encodeFrame, type Frame, FrameReader, ProtocolError } from "./frames.ts";

export const PROTOCOL = 2;

export interface GpuProcessOptions {
  /** The program and its arguments. */
  command: readonly [string, ...string[]];
  /** Added to the environment. */
  env: Readonly<Record<string, string>>;
  /** How long it may take until it dials back: it imports PyTorch first. */
  startMs?: number;
  /** How often it is asked whether it is still there. */
  pingMs?: number;
  /** How long the end of the connection may come before the end of the process, which says more. */
  lastMs?: number;
}

/** Pings that may go unanswered. */
const MAX_SILENCE = 6;
const NAME = "the GPU process";

export class GpuProcess {
  #onFrame: (frame: Frame) => void = () => {};
  /** What came between `ready` and `follow`. */
  #early: Frame[] = [];
  #onEnd: (error: Error) => void = () => {};
  readonly #options: Required<GpuProcessOptions>;
  readonly #nonce = randomBytes(16).toString("hex");
  /** Only this user may enter it. */
  readonly #folder = mkdtempSync(join(tmpdir(), "flywheel-gpu-"));
  readonly #server: Server;
  readonly #words = new LastWords();
  readonly #gone: Promise<void>;
  #resolveGone: () => void = () => {};
  #child: ChildProcess | null = null;
  #socket: Socket | null = null;
  #ended: Error | null = null;
  #timer: NodeJS.Timeout | null = null;
  #silence = 0;
  /** Why we end it, if we do. */
  #reason: Error | null = null;

  private constructor(options: GpuProcessOptions) {
    this.#options = { startMs: 300_000, pingMs: 10_000, lastMs: 1_000, ...options };
    this.#server = createServer((socket) => this.#listen(socket));
    this.#gone = new Promise((resolve) => {
      this.#resolveGone = resolve;
    });
  }

  /**
   * Starts it, says hello and waits until it is ready. Rejects with OperatorError when the program cannot be started or
   * refuses, and with how it ended when it ended.
   */
  static start(options: GpuProcessOptions, hello: object): Promise<{ process: GpuProcess; ready: Frame }> {
    const started = new GpuProcess(options);
    return new Promise((resolve, reject) => {
      started.#onEnd = reject;
      started.#onFrame = (frame) => {
        switch (frame.type) {
          case "dial":
            started.send({ type: "hello", protocol: PROTOCOL, ...hello });
            return;
          case "refused":
            started.#stop(new OperatorError(frame.text("message")));
            return;
          case "ready":
            started.#onFrame = (early) => started.#early.push(early);
            resolve({ process: started, ready: frame });
            return;
          default:
            throw frame.problem("came before the process was ready");
        }
      };
      started.#launch();
    });
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /**
   * `onFrame`: called with every frame that is not about the connection; a ProtocolError that it throws ends the process.
   * `onEnd`: called once, when the process is gone.
   */
  follow(onFrame: (frame: Frame) => void, onEnd: (error: Error) => void): void {
    this.#onFrame = onFrame;
    this.#onEnd = onEnd;
    for (const frame of this.#early.splice(0)) onFrame(frame);
    if (this.#ended !== null) onEnd(this.#ended);
  }

  send(header: object, arrays?: ArraysToSend): void {
    const socket = this.#socket;
    if (socket === null || socket.destroyed) return;
    socket.cork();
    for (const part of encodeFrame(header, arrays)) socket.write(part);
    socket.uncork();
  }

  /** Ends a process that cannot be used any more. `reason`: what `onEnd` gets. */
  end(reason: string): void {
    this.#stop(new Error(`${NAME} was ended: ${reason}`));
  }

  /** Resolves when it is gone. */
  async kill(): Promise<void> {
    this.#signal("SIGKILL");
    await this.#gone;
  }

  #launch(): void {
    const path = join(this.#folder, "socket");
    const { startMs } = this.#options;
    this.#server.on("error", (error) => this.#finish(new Error(`${NAME}'s socket: ${error.message}`)));
    this.#server.listen(path, () => this.#spawn(path));
    this.#timer = setTimeout(() => this.end(`it did not dial back in ${startMs / 1000} seconds`), startMs);
  }

  #spawn(path: string): void {
    if (this.#ended !== null) return;
    const { command, env } = this.#options;
    const [program, ...args] = command;
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      // a group of its own: an interrupt at the terminal is for the server, which lets requests finish
      detached: true,
      env: childEnvironment([], { ...env, FLYWHEEL_GPU_SOCKET: path, FLYWHEEL_GPU_NONCE: this.#nonce }),
    });
    this.#child = child;
    for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (chunk: Buffer) => this.#words.add(chunk));
    const ended = (code: number | null, killedBy: NodeJS.Signals | null) =>
      this.#finish(this.#reason ?? this.#words.error(howItEnded(NAME, code, killedBy)));
    child.on("exit", (code, killedBy) => {
      this.#signal("SIGKILL"); // what it left behind
      // its last words follow, unless something in a session of its own keeps its output open
      setTimeout(() => ended(code, killedBy), this.#options.lastMs).unref();
    });
    child.on("close", ended);
    child.on("error", (cause) =>
      this.#finish(new OperatorError(`${program} cannot be started: ${cause.message}`, { cause })),
    );
  }

  /** The first connection that knows the nonce is the process. */
  #listen(socket: Socket): void {
    const reader = new FrameReader();
    socket.on("error", () => {}); // its end follows
    socket.on("data", (piece: Buffer) => {
      try {
        for (const frame of reader.push(piece)) {
          if (this.#reason !== null) return;
          if (this.#socket === null && !this.#greet(socket, frame)) {
            socket.destroy();
            return;
          }
          this.#silence = 0;
          if (frame.type !== "pong") this.#onFrame(frame);
        }
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        if (socket === this.#socket) this.#stop(error);
        else socket.destroy();
      }
    });
    socket.on("close", () => {
      if (socket !== this.#socket) return;
      // it may be about to end, and then its exit code says more
      setTimeout(() => this.end("it closed its connection"), this.#options.lastMs).unref();
    });
  }

  #greet(socket: Socket, frame: Frame): boolean {
    if (frame.type !== "dial" || frame.header.nonce !== this.#nonce) return false;
    this.#socket = socket;
    this.#server.close();
    rmSync(this.#folder, { recursive: true, force: true });
    clearTimeout(this.#timer ?? undefined);
    this.#timer = setInterval(() => {
      if (++this.#silence > MAX_SILENCE) this.end("it stopped answering");
      this.send({ type: "ping" });
    }, this.#options.pingMs);
    const spoken = frame.header.protocol;
    if (spoken !== PROTOCOL) this.end(`it speaks protocol ${spoken}; this server speaks ${PROTOCOL}`);
    return this.#reason === null;
  }

  #stop(reason: Error): void {
    if (this.#ended !== null || this.#reason !== null) return;
    this.#reason = reason;
    this.#signal("SIGKILL");
  }

  /** To the process and everything it started. */
  #signal(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) {
      this.#finish(this.#reason ?? new Error(`${NAME} was ended before it started`));
      return;
    }
    signalGroup(pid, signal);
  }

  #finish(error: Error): void {
    if (this.#ended !== null) return;
    this.#ended = error;
    clearTimeout(this.#timer ?? undefined);
    this.#socket?.destroy();
    this.#server.close();
    rmSync(this.#folder, { recursive: true, force: true });
    this.#resolveGone();
    this.#onEnd(error);
  }
}
