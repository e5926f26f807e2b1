// The one opening of a generation, for every dialect: read, admit, find the model, prepare, run, answer. A dialect reads its
// requests and builds its replies. What is the same for all is decided here once: the id of the request, who may end it
// and when, whose prefixes it shares, and how much memory its reply may take.

import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { errorEnvelope, ServiceError } from "../../errors/service-error.ts";
import { givingWay, orAborted } from "../../pacing/turns.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import { type Principal, principalOf } from "../http/auth.ts";
import { asClientErrors, toWireError } from "../http/errors.ts";
import { requestIdOf, safeId } from "../http/headers.ts";
import { clientGone, DONE, EventStream } from "../http/streams.ts";
import type { ModelLease } from "../models/model-registry.ts";
import type { Service } from "../service.ts";
import { type GenerationPlan, RunningGeneration, type RunOutput } from "./generation.ts";
import type { HeldLogprobs } from "./logprob-memory.ts";
import type { EngineArgFields } from "./sampling.ts";

// Streams the outputs of one or more runs to one client. Output is sent at once. While the client's socket is full, the source
// merges it, and it is sent when the socket drains. A client that makes it hold back more than `streamBufferBytes` is too slow
// to serve: its stream is cut and its work aborted.

/** What a dialect makes of the outputs of all runs. */
export interface WholeReply {
  /** What comes next waits for it. */
  accept(run: number, output: RunOutput): void | Promise<void>;
  /** The reply as JSON text, after every output. */
  toJson(tokenizer: Tokenizer): string | Promise<string>;
}

/** The same, or events instead. */
export interface Reply extends WholeReply {
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

async function streamRuns(
  service: Service,
  reply: FastifyReply,
  gone: AbortSignal,
  runs: readonly RunningGeneration[],
  source: Reply,
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

  async function forward(run: RunningGeneration, index: number): Promise<void> {
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

/** What a dialect has read of a request. */
export interface Question {
  body: EngineArgFields & {
    model?: string | null | undefined;
    stream?: boolean | null | undefined;
    request_id?: string | undefined;
  };
  /** Places that it takes. */
  choices: number;
  /** Unknown fields. */
  ignored: readonly string[];
  /** Every refusal happens here or in reading: nothing has been sent yet. A PromptError is a refusal too. */
  prepare(context: PrepareContext): Promise<PreparedAnswer>;
}

export interface PrepareContext {
  model: ModelLease;
  requestId: string;
  client: Principal;
  /** Aborted when nobody waits for the answer any more. */
  stopped: AbortSignal;
}

export interface PreparedAnswer {
  /** They run at once. One that fails ends the others. */
  runs: readonly GenerationPlan[];
  /** How many log-probabilities are held at once: by a whole reply all of them, by a stream those that it has not sent. */
  logprobs: number;
  /** A question that streams has one with events. */
  reply: Reply | WholeReply;
}

/** The id under which a client may end a request that has not been read yet. */
function claimedId(request: FastifyRequest): string {
  const { request_id: id } = (request.body ?? {}) as { request_id?: unknown };
  return typeof id === "string" && safeId(request.headers["x-request-id"]) === null ? id : request.id;
}

/** `read` throws what is wrong with the request. */
export async function answer(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  read: () => Question | Promise<Question>,
): Promise<FastifyReply> {
  const arrivedAt = performance.now();
  const gone = clientGone(reply.raw);
  const client = principalOf(request);
  const live = service.live.enter(claimedId(request), client);
  const stopWatching = service.access.watch(request, (why) => live.cancel(why));
  const over = () => {
    service.live.leave(live);
    stopWatching();
  };
  let question: Question;
  let leave: () => void;
  try {
    question = await orAborted(Promise.resolve(read()), live.cancelled);
    const { body, choices, ignored } = question;
    service.logIgnored(request, ignored, body);
    service.assertServing();
    live.id = requestIdOf(request, reply, body.request_id);
    // First of all, because a full server should refuse before it renders and tokenises.
    leave = service.admission.enter(choices);
    live.choices = choices;
  } catch (error) {
    over();
    throw error;
  }
  const { body } = question;
  const requestId = live.id;
  let model: ModelLease | null = null;
  const prepare = async (): Promise<PreparedAnswer> => {
    const stopped = AbortSignal.any([gone, live.cancelled]);
    model = await service.models.resolve(body.model, client, () => stopped);
    service.live.runsOn(live, model);
    await service.turns.next();
    return asClientErrors(() => question.prepare({ model: model!, requestId, client, stopped }));
  };
  const preparing = prepare();
  try {
    const { runs: prepared, logprobs, reply: answered } = await orAborted(preparing, live.cancelled);
    checkGrammars(prepared);
    const owner = service.config.sharePrefixCache ? null : client.workspace.id;
    const held = service.logprobMemory.hold(client.id, logprobs, reply.raw);
    const runs = prepared.map(({ request: asked, choices }) => {
      const request = { ...asked, cacheSalt: cacheSalt(owner, asked.cacheSalt) };
      return new RunningGeneration(service, {
        request,
        choices,
        arrivedAt,
        clientGone: gone,
        live,
        held: body.stream === true ? null : held,
      });
    });
    if (body.stream === true && "take" in answered) {
      await streamRuns(service, reply, gone, runs, answered, logprobs === 0 ? null : held);
      return reply;
    }
    await collect(runs, answered);
    if (gone.aborted) return reply.hijack();
    const json = await answered.toJson(service.text.tokenizer);
    return reply.type("application/json; charset=utf-8").send(json.length > LARGE_REPLY ? inPieces(json) : json);
  } finally {
    over();
    const end = () => {
      model?.release();
      leave();
    };
    // What a cancelled request has begun keeps its place until it is over.
    if (live.cancelled.aborted) preparing.then(end, end);
    else end();
  }
}

/** Bytes of compiled constraints that the engine gets for all prompts of a request. One has at most 4 MiB. */
const MOST_GRAMMAR_BYTES = 64 * 2 ** 20;

function checkGrammars(runs: readonly GenerationPlan[]): void {
  const bytes = runs.reduce((sum, { request }) => sum + (request.grammar?.length ?? 0), 0);
  if (bytes <= MOST_GRAMMAR_BYTES) return;
  const message =
    `The constraint takes ${bytes / runs.length} bytes for each of ${runs.length} prompts, and all of them may take ` +
    `${MOST_GRAMMAR_BYTES}: send fewer prompts in one request.`;
  throw new ServiceError("invalid_constraint", message);
}

/** In characters. Larger ones are sent in pieces: making bytes of 200 MB at once would hold up everybody, and take as much memory again. */
const LARGE_REPLY = 2 ** 20;
const PIECE = 65_536;

function inPieces(text: string): Readable {
  return Readable.from(piecesOf(text));
}

/** Gives way: a connection that takes all of it at once would keep everybody else waiting. */
async function* piecesOf(text: string): AsyncGenerator<string> {
  const giveWay = givingWay();
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = Math.min(at + PIECE, text.length);
    if (/[\ud800-\udbff]/.test(text[end - 1]!)) end++; // half of a character has no bytes
    await giveWay();
    yield text.slice(at, end);
  }
}

/** `owner`: the workspace whose requests share prefixes; null = all do. Hexadecimal, as vLLM takes no other salts. */
function cacheSalt(owner: string | null, own: string | null): string {
  return createHash("sha256")
    .update(JSON.stringify(["cache", owner, own]))
    .digest("hex");
}

async function collect(runs: readonly RunningGeneration[], reply: WholeReply): Promise<void> {
  try {
    await Promise.all(
      runs.map(async (run, index) => {
        for await (const output of run.outputs()) await reply.accept(index, output);
      }),
    );
  } catch (error) {
    for (const run of runs) run.abort();
    throw error;
  }
}
