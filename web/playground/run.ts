// Sends requests and feeds what comes back to the reducer, once per frame to the page.
import { ApiError, isConnectionFault } from "../../src/client/http.ts";
import { serverSentEvents } from "../../src/client/server-sent-events.ts";
import { call, watched } from "../server.ts";
import { messageOf } from "../session.ts";
import { addContinuation, addEvent, type Exchange, fail, type Reply, startExchange } from "./reply.ts";
import type { Body } from "./request.ts";

/** Runs a chat request to its end. `show` is called at most once per frame, and at the end. */
export async function runChat(body: Body, show: (exchange: Exchange) => void, stop: AbortSignal): Promise<Exchange> {
  const exchange = startExchange(body, performance.now());
  const frames = new Frames(() => show(exchange));
  show(exchange);
  try {
    for await (const data of eventsOf("/chat/completions", body, stop)) {
      addEvent(exchange, data, performance.now());
      frames.ask();
    }
    if (exchange.state === "waiting" || exchange.state === "streaming") {
      fail(exchange, "The stream ended before the reply did.", null);
    }
  } catch (error) {
    if (stop.aborted) exchange.state = "stopped";
    else fail(exchange, sentence(error), paramOf(error));
  }
  frames.stop();
  show(exchange);
  return exchange;
}

/** Goes on with a branch to its end. Throws a sentence. */
export async function runContinuation(body: Body, reply: Reply, show: () => void, stop: AbortSignal): Promise<void> {
  const frames = new Frames(show);
  try {
    for await (const data of eventsOf("/completions", body, stop)) {
      addContinuation(reply, data);
      frames.ask();
    }
  } catch (error) {
    if (!stop.aborted) throw new Error(sentence(error));
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

function sentence(error: unknown): string {
  return isConnectionFault(error) ? "The connection to the server broke." : messageOf(error);
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
