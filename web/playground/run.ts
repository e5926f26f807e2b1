// Sends requests and feeds what comes back to the reducer, once per frame to the page.
import { ApiError, isConnectionFault, sleep } from "../../src/client/http.ts";
import { serverSentEvents } from "../../src/client/server-sent-events.ts";
import { call, watched, whenBack } from "../server.ts";
import { messageOf } from "../session.ts";
import type { Body } from "./message.ts";
import { addContinuation, addEvent, type Exchange, fail, isRunning, type Reply, startExchange } from "./reply.ts";

/**
 * Runs a chat request to its end. `show` is called at most once per frame, and at the end. When the connection breaks, the
 * request waits for the server and is sent again: the same seed draws the same tokens.
 */
export async function runChat(body: Body, show: (exchange: Exchange) => void, stop: AbortSignal): Promise<Exchange> {
  const exchange = startExchange(body, performance.now());
  const frames = new Frames(() => show(exchange));
  show(exchange);
  let wasLost = false;
  while (isRunning(exchange)) {
    try {
      for await (const data of eventsOf("/chat/completions", body, stop)) {
        addEvent(exchange, data, performance.now());
        frames.ask();
      }
      if (isRunning(exchange)) fail(exchange, "The stream ended before the reply did.", null);
    } catch (error) {
      const isStarting = wasLost && error instanceof ApiError && error.status === 503;
      if (stop.aborted) exchange.state = "stopped";
      else if (isConnectionFault(error) || isStarting) {
        wasLost = true;
        exchange.state = "lost";
        frames.stop();
        show(exchange);
        await (isStarting ? sleep(SOON_MS, stop) : whenBack(stop)).catch(() => {}); // ended by the signal
        if (stop.aborted) exchange.state = "stopped";
        else Object.assign(exchange, startExchange(body, performance.now()));
      } else fail(exchange, messageOf(error), paramOf(error));
    }
  }
  frames.stop();
  show(exchange);
  return exchange;
}

/** How soon a server that has just started is asked again. */
const SOON_MS = 1_000;

/** Goes on with a branch to its end. Throws a sentence. */
export async function runContinuation(body: Body, reply: Reply, show: () => void, stop: AbortSignal): Promise<void> {
  const frames = new Frames(show);
  try {
    for await (const data of eventsOf("/completions", body, stop)) {
      addContinuation(reply, data);
      frames.ask();
    }
  } catch (error) {
    if (!stop.aborted)
      throw new Error(isConnectionFault(error) ? "The connection to the server broke." : messageOf(error));
  } finally {
    frames.stop();
    show();
  }
}

async function* eventsOf(path: string, body: Body, signal: AbortSignal): AsyncGenerator<string> {
  const response = await call("POST", path, { body, signal });
  const events = serverSentEvents(response.body!);
  for (;;) {
    const { done, value } = await watched(events.next());
    if (done) return;
    yield value.data;
  }
}

function paramOf(error: unknown): string | null {
  if (!(error instanceof ApiError)) return null;
  return (error.body as { error?: { param?: string | null } } | null)?.error?.param ?? null;
}

/** Joins many calls into one per frame. */
class Frames {
  readonly #run: () => void;
  #frame: number | null = null;

  constructor(run: () => void) {
    this.#run = run;
  }

  ask(): void {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      this.#run();
    });
  }

  stop(): void {
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    this.#frame = null;
  }
}
