// A trainer process made by a command line of the operator, such as torchrun. It dials back to a socket of ours and
// sends one JSON object per line. Not over stdin and stdout: torchrun gives its ranks neither, and libraries print.
// Both sides prove that they know a random secret, which is only in the environment of what we start, and the operator's key
// if the trainer may run on other machines (`proofOf`).

import { type ChildProcess, spawn } from "node:child_process";
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { linesOf } from "../../json/json.ts";
import { childEnvironment, howItEnded, LastWords, signalGroup } from "../../system/child-process.ts";
import type { FromTrainer, ToTrainer, TrainerProcess } from "./trainer-process.ts";

// How server and trainer prove to each other that they know a secret, without sending it: each answers the other's random
// challenge. trainer/flywheel_trainer/channel.py is the other side.

/** Both challenges of a connection. */
interface Challenges {
  trainer: string;
  server: string;
}

const CHALLENGE = /^[0-9a-f]{64}$/;

function newChallenge(): string {
  return randomBytes(32).toString("hex");
}

/** Whether the other side sent a challenge. Any other text could be made to look like another one. */
function isChallenge(text: unknown): text is string {
  return typeof text === "string" && CHALLENGE.test(text);
}

/** `role`: whose proof it is, so that nobody can send ours back to us. */
export function proofOf(secret: string, role: "server" | "trainer", { trainer, server }: Challenges): string {
  return createHmac("sha256", secret).update(`${role} ${trainer} ${server}`).digest("hex");
}

function isProof(found: unknown, secret: string, role: "server" | "trainer", challenges: Challenges): boolean {
  const wanted = Buffer.from(proofOf(secret, role, challenges));
  const given = Buffer.from(typeof found === "string" ? found : "");
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

export interface CommandOptions {
  /** Run by the shell. */
  command: string;
  /** Variables of ours that it gets, beside those that every child gets. */
  passedOn?: readonly string[];
  /** Added to the environment. */
  env: Readonly<Record<string, string>>;
  /** How long it may take until it dials back: it imports PyTorch first. */
  startMs: number;
  /** How often it is asked whether it is still there. */
  pingMs: number;
  /** Receives what it writes. */
  onOutput?: (text: string) => void;
  /** Where it dials over TCP, from other machines too; port 0 picks a free one. Default: a Unix socket. */
  address?: { host: string; port: number };
  /** A secret of the operator and the file with it, which has the same path on the other machines. */
  key?: { file: string; text: string };
}

type Greeting = { type: "hello"; challenge: string } | { type: "proof"; proof: string; protocol: number };
type FromCommand = Greeting | { type: "pong" } | (FromTrainer & { id: number });

const PROTOCOL = 2;
/** Pings that may go unanswered. */
const MAX_SILENCE = 6;
/** torchrun ends its ranks when it is asked to end; killed at once it could not. */
const END_MS = 5_000;
const PROOF_MS = 10_000;
const PROOF_BYTES = 65_536;
/** How long it may live after its connection has ended. */
const LAST_MS = 1_000;

export class CommandProcess implements TrainerProcess {
  onMessage: ((message: FromTrainer) => void) | null = null;
  onEnd: ((error: Error) => void) | null = null;
  ended: Error | null = null;
  readonly #options: CommandOptions;
  readonly #nonce = randomBytes(16).toString("hex");
  /** Never sent. */
  readonly #secret: string;
  /** Only this user may enter it. */
  readonly #folder = mkdtempSync(join(tmpdir(), "flywheel-trainer-"));
  readonly #server: Server;
  readonly #words = new LastWords();
  readonly #gone: Promise<void>;
  #resolveGone: () => void = () => {};
  #child: ChildProcess | null = null;
  #socket: Socket | null = null;
  /** Sent when it has dialled back. */
  #waiting: object[] = [];
  #task = 0;
  #timer: NodeJS.Timeout | null = null;
  #silence = 0;
  /** Why we end it, if we do. */
  #reason: string | null = null;

  constructor(options: CommandOptions) {
    this.#options = options;
    this.#secret = `${this.#nonce}:${options.key?.text ?? ""}`;
    this.#gone = new Promise((resolve) => {
      this.#resolveGone = resolve;
    });
    const path = join(this.#folder, "socket");
    this.#server = createServer((socket) => void this.#listen(socket));
    const { address } = options;
    if (address === undefined) {
      this.#server.listen(path, () => this.#start({ FLYWHEEL_TRAINER_SOCKET: path, FLYWHEEL_TRAINER_ADDRESS: "" }));
    } else {
      this.#server.listen(address, () => {
        const { port } = this.#server.address() as AddressInfo;
        this.#start({ FLYWHEEL_TRAINER_ADDRESS: `${address.host}:${port}` });
      });
    }
    this.#server.on("error", (error) => this.#end(new Error(`the trainer's socket: ${error.message}`)));
    this.#timer = setTimeout(
      () => this.#stop(`it did not dial back in ${options.startMs / 1000} seconds`),
      options.startMs,
    );
  }

  send(message: ToTrainer): void {
    if (message.type !== "cancel") {
      this.#task++;
      this.#words.clear();
    }
    this.#write({ ...message, id: this.#task });
  }

  async kill(): Promise<void> {
    this.#signal("SIGTERM");
    const force = setTimeout(() => this.#signal("SIGKILL"), END_MS);
    await this.#gone;
    clearTimeout(force);
  }

  /** `where`: variables that say where to dial. */
  #start(where: Record<string, string>): void {
    if (this.ended !== null) return;
    const { command, env, passedOn, key } = this.#options;
    const own = { ...env, ...where, FLYWHEEL_TRAINER_NONCE: this.#nonce, FLYWHEEL_TRAINER_KEY_FILE: key?.file ?? "" };
    const child = spawn("sh", ["-c", `exec ${command}`], {
      stdio: ["ignore", "pipe", "pipe"],
      // a group of its own, so that everything it starts can be ended
      detached: true,
      env: childEnvironment(passedOn, own),
    });
    this.#child = child;
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.on("data", (chunk: Buffer) => {
        this.#words.add(chunk);
        this.#options.onOutput?.(chunk.toString());
      });
    }
    child.on("exit", (code, killedBy) => {
      this.#signal("SIGKILL"); // what it left behind
      // its last words follow, unless something in a session of its own keeps its output open
      setTimeout(
        () => this.#end(this.#words.error(this.#reason ?? howItEnded("the trainer process", code, killedBy))),
        LAST_MS,
      ).unref();
    });
    child.on("close", (code, killedBy) => {
      this.#end(this.#words.error(this.#reason ?? howItEnded("the trainer process", code, killedBy)));
    });
    child.on("error", (cause) => this.#end(new Error(`the trainer could not be started: ${cause.message}`, { cause })));
  }

  async #listen(socket: Socket): Promise<void> {
    socket.on("error", () => {}); // its end follows
    let known = false;
    let challenges: Challenges | null = null;
    const strangers = this.#expectProof(socket);
    try {
      for await (const line of linesOf(socket.setEncoding("utf8"))) {
        const message = JSON.parse(line) as FromCommand;
        if (challenges === null) {
          if (message.type !== "hello" || !isChallenge(message.challenge)) return;
          challenges = { trainer: message.challenge, server: newChallenge() };
          const proof = proofOf(this.#secret, "server", challenges);
          socket.write(`${JSON.stringify({ type: "challenge", challenge: challenges.server, proof })}\n`);
        } else if (!known) {
          if (message.type !== "proof" || !isProof(message.proof, this.#secret, "trainer", challenges)) return;
          if (message.protocol !== PROTOCOL) {
            this.#stop(`it speaks protocol ${message.protocol}; this server speaks ${PROTOCOL}`);
            return;
          }
          known = true;
          clearInterval(strangers);
          this.#greet(socket);
        } else this.#receive(message);
      }
    } catch (error) {
      if (known && error instanceof SyntaxError) this.#stop(`it sent a line that is not JSON: ${error.message}`);
    } finally {
      clearInterval(strangers);
      socket.destroy();
      // it may be about to end, and then its exit code says more
      if (known) setTimeout(() => this.#stop("it closed its connection"), LAST_MS).unref();
    }
  }

  /** Over TCP anyone may dial. Who does not prove the secret soon, or sends much else, is hung up on. */
  #expectProof(socket: Socket): NodeJS.Timeout {
    const due = performance.now() + PROOF_MS;
    return setInterval(() => {
      if (performance.now() > due || socket.bytesRead > PROOF_BYTES) socket.destroy();
    }, 100);
  }

  #greet(socket: Socket): void {
    this.#socket = socket;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = setInterval(() => {
      if (++this.#silence > MAX_SILENCE) this.#stop("it stopped answering");
      this.#write({ type: "ping" });
    }, this.#options.pingMs);
    for (const message of this.#waiting.splice(0)) this.#write(message);
  }

  #receive(message: FromCommand): void {
    this.#silence = 0;
    if (message.type === "hello" || message.type === "proof" || message.type === "pong") return;
    if (message.id !== this.#task) return;
    const { id: _, ...rest } = message;
    this.onMessage?.(rest);
  }

  #write(message: object): void {
    if (this.#socket === null) this.#waiting.push(message);
    else this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  /** Ends a process that cannot be used any more. */
  #stop(reason: string): void {
    if (this.ended !== null) return;
    this.#reason ??= `the trainer process was ended: ${reason}`;
    void this.kill();
  }

  /** To everything that the command started. */
  #signal(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) {
      this.#end(new Error("the trainer was ended before it started"));
      return;
    }
    signalGroup(pid, signal);
  }

  #end(error: Error): void {
    if (this.ended !== null) return;
    this.ended = error;
    if (this.#timer) clearTimeout(this.#timer);
    this.#socket?.destroy();
    this.#server.close();
    rmSync(this.#folder, { recursive: true, force: true });
    this.#resolveGone();
    this.onEnd?.(error);
  }
}
