// Streams the outputs of one or more runs to one client. Output is sent at once. While the client's socket is full, the source
// merges it, and it is sent when the socket drains. A client that makes it hold back more than `streamBufferBytes` is too slow
// to serve: its stream is cut and its work aborted.
import type { FastifyReply } from "fastify";
import { errorEnvelope, type ServiceError } from "../../errors/service-error.ts";
import { toWireError } from "../http/http-errors.ts";
import { DONE, EventStream } from "../http/sse.ts";
import type { Service } from "../service.ts";
import type { GenerationRun, RunOutput } from "./generation-run.ts";
import type { HeldLogprobs } from "./logprob-memory.ts";

/** Turns outputs into events of one dialect. */
export interface ChunkSource {
  /** What comes next waits for it. */
  accept(run: number, output: RunOutput): void | Promise<void>;
  /** Events for everything accepted since the last call. */
  take(): string;
  /** Roughly the bytes `take` would give. */
  readonly size: number;
  /** The last events, after every output. */
  closing(): string | Promise<string>;
  /** The last events of a stream that fails. */
  failure(error: ServiceError): string | Promise<string>;
}

/** How the stream of a completion fails: an error envelope as its last event. */
export function failedCompletion(error: ServiceError): string {
  return `data: ${JSON.stringify(errorEnvelope(error))}\n\n${DONE}`;
}

export async function streamRuns(
  service: Service,
  reply: FastifyReply,
  gone: AbortSignal,
  runs: readonly GenerationRun[],
  source: ChunkSource,
  held: HeldLogprobs | null,
): Promise<void> {
  reply.hijack();
  const events = new EventStream(reply.raw, {
    headers: reply.getHeaders(),
    stallTimeout: service.config.streamStallTimeout,
    onDrain: () => {
      events.send(source.take());
      account();
    },
  });
  try {
    await Promise.all(runs.map((run, index) => forward(run, index)));
    events.end(source.take() + (await source.closing()));
    account();
  } catch (error) {
    for (const run of runs) run.abort();
    const wire = toWireError(error);
    if (wire.status === 500) service.log.error("stream failed", { id: reply.getHeader("x-request-id"), error });
    if (!gone.aborted) service.metrics.streamAborted(wire.code === "shutting_down" ? "shutdown" : "error");
    events.end(source.take() + (await source.failure(wire)));
  }
  if (gone.aborted) service.metrics.streamAborted(events.cutOff ? "slow_client" : "client_gone");

  async function forward(run: GenerationRun, index: number): Promise<void> {
    for await (const output of run.outputs()) {
      await source.accept(index, output);
      if (!events.blocked) events.send(source.take());
      else if (source.size > service.config.streamBufferBytes) events.cut();
      account();
    }
  }

  /** What waits for the reader counts. Where there is no room for it, the reader is too slow. */
  function account(): void {
    if (held?.keep(source.size + events.waiting) === false) events.cut();
  }
}
