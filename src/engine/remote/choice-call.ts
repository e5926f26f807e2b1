// One choice on a replica: a streamed completion with n = 1. Tokens of all chunks that arrive together become one
// output. The finish waits for the usage chunk behind it, so that cached tokens are known before the choice ends.
import { forbiddingControls } from "../../sampling/controls.ts";
import { NoLegalTokenError } from "../../sampling/errors.ts";
import type { SampledToken } from "../../sampling/token-logprobs.ts";
import type { Finish, GenerateRequest } from "../contract.ts";
import type { Call, HttpClient, Reply } from "./http-client.ts";
import { NotExpressible } from "./structured-outputs.ts";
import {
  finishOf,
  parseReply,
  type ServerFacts,
  tokensOf,
  type WireCompletion,
  type WireError,
} from "./vllm-dialect.ts";

// Splits a server-sent event stream into payloads, however the network cut it. Called for every token, so it decodes
// bytes as latin1: ids and numbers are ASCII. Text of errors is decoded properly by `utf8`.

export class EventReader {
  readonly #onPayload: (payload: string) => void;
  /** The line that has begun. Pieces are only joined when it ends: its search would take quadratic time. */
  #line = "";

  constructor(onPayload: (payload: string) => void) {
    this.#onPayload = onPayload;
  }

  push(bytes: Buffer): void {
    const text = bytes.toString("latin1");
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      const line = this.#line + text.slice(from, end);
      this.#line = "";
      if (line.startsWith("data:")) this.#onPayload(line.slice(5).trim());
      from = end + 1;
    }
    this.#line += text.slice(from);
  }
}

/** Decodes text that was read as latin1. */
function utf8(text: string): string {
  return Buffer.from(text, "latin1").toString();
}

// How a choice ends when a server answers with an error: before the stream with a status, or inside it with an event.

/** A status other than 200. The body is an error object, or anything else where a proxy answers. */
export function finishOfReply(reply: Reply, { adapter }: GenerateRequest, server: ServerFacts): Finish {
  const { status } = reply;
  const error = parseReply(reply.text)?.error ?? { message: reply.text.slice(0, 200) };
  const text = error.message || `status ${status}`;
  const failed = { reason: "error", stopReason: null, message: text } as const;
  if (status === 404 && adapter !== null) return { ...failed, fault: "unloaded" };
  if (status === 400 || status === 413 || status === 422) {
    return { ...failed, fault: "refused", message: refusal(text, error.param ?? null, server) };
  }
  // The others are the operator's mistakes: a wrong key, a wrong URL.
  return status === 429 || status >= 500 ? { ...failed, fault: "lost" } : failed;
}

export interface FailedChoice {
  request: GenerateRequest;
  server: ServerFacts;
  /** Tokens that it has sent. */
  position: number;
}

/** An error event inside the stream. `code` is a status. */
export function finishOfEvent(error: WireError, choice: FailedChoice): Finish {
  const { request, server } = choice;
  const failed = { reason: "error", stopReason: null, message: error.message ?? "no reason given" } as const;
  const status = Number(error.code ?? 500);
  if (server.flywheel) {
    // An engine that fails one request goes on.
    if (status !== 400) return status === 500 ? failed : { ...failed, fault: "lost" };
    // It finds during generation that no token is left. Its words are ours.
    return { ...failed, fault: error.param === "structured_outputs" ? "constraint" : "contradiction" };
  }
  if (status === 400) return { ...failed, fault: "refused", message: refusal(failed.message, null, server) };
  const isGivenUp = status === 500 && (failed.message === GIVEN_UP || failed.message === RAISED);
  // Keys and values that did not arrive here may arrive elsewhere.
  if (!isGivenUp || request.extra?.kvTransferParams) return { ...failed, fault: "lost" };
  return request.constraint === null ? failed : { ...failed, ...constraintFault(failed.message, choice) };
}

/**
 * What vLLM says when it ends one request and goes on with the others: its grammar, or a transfer, failed in the engine;
 * or something raised before the engine had it. When the engine itself fails, the message is another one.
 */
const GIVEN_UP = "Internal server error";
const RAISED = "";

/** The request would fail in the same way everywhere. */
function constraintFault(
  message: string,
  { request, server, position }: FailedChoice,
): Pick<Finish, "fault" | "message"> {
  const engine = `The engine behind this server (${productOf(server)})`;
  if (message === RAISED) {
    const why = "Its grammar compiler may not know something in structured_outputs";
    return { fault: "refused", message: `${engine} refuses the request without a reason. ${why}; its log says more.` };
  }
  const controls = forbiddingControls(request.sampling, position, true);
  if (controls.length === 1) return { fault: "constraint", message: `${engine} broke the constraint and gave up.` };
  return { fault: "contradiction", message: new NoLegalTokenError(position, controls).message };
}

export function productOf({ flywheel, version }: ServerFacts): string {
  return `${flywheel ? "Flywheel" : "vLLM"} ${version.join(".")}`;
}

function refusal(text: string, param: string | null, server: ServerFacts): string {
  const isLogprobs =
    param === "logprobs" || param === "prompt_logprobs" || /max.allowed.*logprobs|logprobs.*max/.test(text);
  const hint = isLogprobs ? " Its --max-logprobs is smaller than this server's." : "";
  return `The engine behind this server (${productOf(server)}) refuses the request: ${text}${hint}`;
}

/** `cachedTokens`: of the prompt, when the server has said so. */
export type OnTokens = (tokens: SampledToken[], finish: Finish | null, cachedTokens: number | null) => void;

export interface SentChoice {
  request: GenerateRequest;
  /** JSON. */
  body: string;
  /** The reply is not streamed. */
  isWhole: boolean;
}

export class ChoiceCall {
  readonly #request: GenerateRequest;
  readonly #server: ServerFacts;
  readonly #onTokens: OnTokens;
  readonly #call: Call;
  readonly #flushBound = () => this.#flush();
  readonly #reader = new EventReader((payload) => this.#payload(payload));
  #status = 0;
  /** Bytes of a reply that is no stream. */
  readonly #body: Buffer[] = [];
  /** Tokens that are not handed on yet, and how many have been. */
  #tokens: SampledToken[] = [];
  #sent = 0;
  #finish: Finish | null = null;
  #cachedTokens: number | null = null;
  /** The usage chunk or the end of the stream came: nothing else will. */
  #complete = false;
  #ended = false;

  constructor(client: HttpClient, server: ServerFacts, { request, body, isWhole }: SentChoice, onTokens: OnTokens) {
    this.#request = request;
    this.#server = server;
    this.#onTokens = onTokens;
    this.#call = client.post("/v1/completions", body, {
      onHead: (status) => {
        this.#status = status;
      },
      onData: (bytes) => {
        if (this.#status !== 200 || isWhole) {
          this.#body.push(bytes);
        } else {
          this.#reader.push(bytes);
          flushSoon(this.#flushBound);
        }
      },
      onEnd: () => this.#onEnd(),
      onFailure: (error) => this.lose(error.message),
    });
  }

  abort(): void {
    this.#ended = true;
    this.#call.abort();
  }

  /** The replica is gone. The tokens so far are good, unless the choice was complete already. */
  lose(why: string): void {
    if (this.#finish === null) this.#finish = { reason: "error", stopReason: null, fault: "lost", message: why };
    this.#complete = true;
    this.#flush();
    this.#call.abort();
  }

  #payload(payload: string): void {
    if (payload === "[DONE]") this.#complete = true;
    else this.#accept(parseReply(payload));
  }

  #accept(reply: WireCompletion | null): void {
    if (this.#finish?.reason === "error") return;
    if (reply === null) {
      this.#fail("the engine sends something that is no JSON object");
    } else if (reply.error !== undefined) {
      this.#refuse(reply.error);
    } else {
      this.#acceptChoice(reply);
    }
  }

  #acceptChoice(reply: WireCompletion): void {
    const cached = reply.usage?.prompt_tokens_details?.cached_tokens;
    if (typeof cached === "number") this.#cachedTokens = cached;
    const choice = reply.choices?.[0];
    if (choice === undefined) {
      this.#complete ||= this.#finish !== null;
      return;
    }
    try {
      tokensOf(choice, this.#request.sampling, this.#tokens);
    } catch (error) {
      const { message } = error as Error;
      if (error instanceof NotExpressible) this.#refuse({ message: `it does not know ${message}`, code: 400 });
      else this.#fail(message);
      return;
    }
    const finish = finishOf(choice, this.#request.sampling);
    if (finish === "lost") this.lose(`the engine ended the request (${choice.finish_reason})`);
    else if (finish !== null) this.#finish = withTransfer(finish, reply, this.#request);
  }

  /** An error inside the stream. */
  #refuse(error: WireError): void {
    const choice = { request: this.#request, server: this.#server, position: this.#sent + this.#tokens.length };
    this.#finish = finishOfEvent({ ...error, message: utf8(error.message ?? "") }, choice);
    this.#complete = true;
  }

  #fail(message: string): void {
    this.#finish = { reason: "error", stopReason: null, message };
    this.#complete = true;
  }

  #onEnd(): void {
    this.#flush(); // before the turn's other choices, so that a complete reply keeps its connection
    if (this.#ended) return;
    if (this.#status !== 200) {
      this.#answerError();
    } else {
      if (this.#body.length > 0) this.#accept(parseReply(Buffer.concat(this.#body).toString("latin1")));
      this.lose("the stream ended early");
    }
  }

  /** A status other than 200. */
  #answerError(): void {
    const text = Buffer.concat(this.#body).toString();
    this.#finish = finishOfReply({ status: this.#status, text }, this.#request, this.#server);
    this.#complete = true;
    this.#flush();
  }

  #flush(): void {
    if (this.#ended) return;
    const isHeld = this.#finish !== null && !this.#complete;
    if (isHeld || (this.#tokens.length === 0 && this.#finish === null)) return;
    const tokens = this.#tokens;
    this.#tokens = [];
    this.#sent += tokens.length;
    this.#ended = this.#finish !== null;
    this.#onTokens(tokens, this.#finish, this.#cachedTokens);
  }
}

/** Choices with new chunks. What all connections bring in one turn of the event loop is handed on together. */
let waiting: (() => void)[] = [];

function flushSoon(flush: () => void): void {
  if (waiting.length === 0) {
    setImmediate(() => {
      const due = waiting;
      waiting = [];
      for (const each of due) each();
    });
  }
  waiting.push(flush);
}

/** It names machines of the network behind this server, so only a request about a transfer gets it. */
function withTransfer(
  finish: Finish,
  { kv_transfer_params: kvTransferParams }: WireCompletion,
  { extra }: GenerateRequest,
): Finish {
  return kvTransferParams && extra?.kvTransferParams ? { ...finish, kvTransferParams } : finish;
}
