// One choice on a replica: a streamed completion with n = 1. Tokens of all chunks that arrive together become one
// output. The finish waits for the usage chunk behind it, so that cached tokens are known before the choice ends.

import type { SampledToken } from "../../sampling/token-logprobs.ts";
import type { Finish, GenerateRequest } from "../contract.ts";
import { EventReader, utf8 } from "./completion-stream.ts";
import type { Call, HttpClient } from "./http-client.ts";
import { NotExpressible } from "./not-expressible.ts";
import {
  finishOf,
  parseReply,
  type ServerFacts,
  tokensOf,
  type WireCompletion,
  type WireError,
} from "./vllm-dialect.ts";
import { finishOfEvent, finishOfReply } from "./wire-errors.ts";

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
