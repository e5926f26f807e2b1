// Puts a world in the place of Node's clock, timers, random numbers and files: the code under test asks for them as ever.
// Import this before anything that it is to reach. While no world is on stage, everything is as Node has it.

import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers";
import timersPromises from "node:timers/promises";
import zlib from "node:zlib";
import { Turns } from "../../src/pacing/turns.ts";
import type { Disk } from "./disk.ts";
import { replaceFiles } from "./files.ts";
import { nextTurn, type Scheduled, type World } from "./world.ts";

interface Stage {
  world: World;
  disk: Disk;
}

let stage: Stage | null = null;

const RealDate = Date;
const real = {
  setTimeout,
  setInterval,
  clearTimeout,
  clearInterval,
  random: Math.random,
  now: performance.now.bind(performance),
  next: Turns.prototype.next,
};
const realCrypto = { randomUUID: crypto.randomUUID, randomBytes: crypto.randomBytes, randomInt: crypto.randomInt };
const realPauses = { setTimeout: timersPromises.setTimeout, setImmediate: timersPromises.setImmediate };
const realZip = { gzip: zlib.gzip, gunzip: zlib.gunzip };

/** Runs `play` with this world on stage. */
export async function onStage<R>(world: World, disk: Disk, play: () => Promise<R>): Promise<R> {
  if (stage !== null) throw new Error("there is one world at a time");
  stage = { world, disk };
  const unheard = (error: unknown) => world.unheard(error);
  process.on("unhandledRejection", unheard);
  try {
    return await play();
  } finally {
    process.off("unhandledRejection", unheard);
    stage = null;
  }
}

/** What setTimeout returns. */
class Timer {
  #event: Scheduled | null = null;
  readonly #world: World;
  readonly #every: boolean;

  constructor(world: World, run: () => void, ms: number, every: boolean) {
    this.#world = world;
    this.#every = every;
    this.#plan(world.current, run, ms);
  }

  clear(): void {
    if (this.#event) this.#event.run = null;
    this.#event = null;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  #plan(process: World["current"], run: () => void, ms: number): void {
    const wait = ms >= 1 && ms < 2 ** 31 ? ms : 1;
    this.#event = this.#world.at(process, wait, "timer", () => {
      if (this.#every) this.#plan(process, run, ms);
      run();
    });
  }
}

function replaceTimers(): void {
  const timer =
    (every: boolean, otherwise: typeof setTimeout) =>
    (run: (...args: unknown[]) => void, ms = 1, ...args: unknown[]) => {
      if (stage === null) return otherwise(run, ms, ...args);
      return new Timer(stage.world, () => run(...args), Number(ms), every);
    };
  const clear = (otherwise: typeof clearTimeout) => (timer: unknown) =>
    timer instanceof Timer ? timer.clear() : otherwise(timer as NodeJS.Timeout);
  const immediate = (run: (...args: unknown[]) => void, ...args: unknown[]) => {
    if (stage === null) return nextTurn(run, ...args);
    const { world } = stage;
    return world.at(world.current, 0, "immediate", () => run(...args));
  };
  const replacements = {
    setTimeout: timer(false, real.setTimeout),
    setInterval: timer(true, real.setInterval as typeof setTimeout),
    setImmediate: immediate,
    clearTimeout: clear(real.clearTimeout),
    clearInterval: clear(real.clearInterval as typeof clearTimeout),
  };
  Object.assign(globalThis, replacements);
  Object.assign(timers, replacements);
  Object.assign(timersPromises, {
    setTimeout: (ms?: number, value?: unknown, options: { signal?: AbortSignal } = {}) =>
      stage === null ? realPauses.setTimeout(ms, value, options) : pause(stage.world, ms ?? 1, value, options.signal),
    setImmediate: (value?: unknown) =>
      stage === null ? realPauses.setImmediate(value) : stage.world.pause(0, "immediate").then(() => value),
  });
}

function pause(world: World, ms: number, value: unknown, signal: AbortSignal | undefined): Promise<unknown> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const event = world.at(world.current, Math.max(1, ms), "timer", () => {
      signal?.removeEventListener("abort", abort);
      resolve(value);
    });
    const abort = () => {
      event.run = null;
      reject(Object.assign(new Error("The operation was aborted"), { name: "AbortError", code: "ABORT_ERR" }));
    };
    signal?.addEventListener("abort", abort, { once: true });
  });
}

function replaceClocks(): void {
  const now = () => (stage === null ? RealDate.now() : Math.floor(stage.world.now + stage.world.current.skewMs));
  const VirtualDate = new Proxy(RealDate, {
    construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    get: (target, key) => (key === "now" ? now : Reflect.get(target, key)),
  });
  Object.assign(globalThis, { Date: VirtualDate });
  performance.now = () => (stage === null ? real.now() : stage.world.elapsed + 1000);
}

function replaceChance(): void {
  const bytes = (world: World, size: number) =>
    Buffer.from(Array.from({ length: size }, () => world.chance.between(0, 255)));
  Math.random = () => (stage === null ? real.random() : stage.world.chance.between(0, 2 ** 31 - 1) / 2 ** 31);
  Object.assign(crypto, {
    randomUUID: () => {
      if (stage === null) return realCrypto.randomUUID();
      const hex = bytes(stage.world, 16).toString("hex");
      return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20)].join(
        "-",
      );
    },
    randomBytes: (size: number) => (stage === null ? realCrypto.randomBytes(size) : bytes(stage.world, size)),
    randomInt: (low: number, high?: number) => {
      if (stage === null) return high === undefined ? realCrypto.randomInt(low) : realCrypto.randomInt(low, high);
      return high === undefined ? stage.world.chance.between(0, low - 1) : stage.world.chance.between(low, high - 1);
    },
  });
}

/** Zipping ends at a moment that the world chooses, not when a thread is done. */
function replaceZip(): void {
  type Heard = (error: Error | null, bytes?: Buffer) => void;
  const later =
    (otherwise: typeof zlib.gzip, zip: (input: string | Buffer, options?: object) => Buffer) =>
    (input: string | Buffer, ...rest: unknown[]) => {
      const heard = rest.at(-1) as Heard;
      const options = rest.length > 1 ? (rest[0] as object) : {};
      if (stage === null) return otherwise(input, options, heard as never);
      const { world } = stage;
      world.at(world.current, world.chance.between(0, 3), "zip", () => {
        try {
          heard(null, zip(input, options));
        } catch (error) {
          heard(error as Error);
        }
      });
    };
  Object.assign(zlib, {
    gzip: later(realZip.gzip, zlib.gzipSync),
    gunzip: later(realZip.gunzip as typeof zlib.gzip, zlib.gunzipSync),
  });
}

replaceTimers();
replaceClocks();
replaceChance();
replaceZip();
replaceFiles(() => stage);
syncBuiltinESMExports();

// One object of a module would join the turns of all servers of the world: whoever died would keep the others waiting.
Turns.prototype.next = function next(this: Turns) {
  return stage === null ? real.next.call(this) : stage.world.pause(0, "turn");
};
