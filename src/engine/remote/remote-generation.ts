// Runs one request on a replica: a completion for each choice, all on this replica. The first choice starts alone when
// its prompt fills a block of the prefix cache; the others follow when it has been computed, and find it there.
// Log-probabilities of the prompt are fetched before, because streams cannot carry them. What the model preferred at some of its
// tokens is asked for token by token: whole distributions of many at once would be too much for one reply.

import { forbiddingControls, leavesNoFirstToken } from "../../sampling/controls.ts";
import { NoLegalTokenError } from "../../sampling/errors.ts";
import type { Preference, SampledToken, TokenLogprobs } from "../../sampling/token-logprobs.ts";
import type { Finish, GenerateRequest, Generation } from "../contract.ts";
import { GenerationStream } from "../thread/generation-stream.ts";
import { ChoiceCall, finishOfReply, type OnTokens, productOf } from "./choice-call.ts";
import type { HttpClient, Reply } from "./http-client.ts";
import { NotExpressible } from "./structured-outputs.ts";
import {
  CompletionBodies,
  distributionBody,
  needsWholeReply,
  parseReply,
  promptLogprobsBody,
  type ServerFacts,
  type WireCompletion,
} from "./vllm-dialect.ts";
import { preferenceOf, promptLogprobs } from "./wire-logprobs.ts";

export interface GenerationHost {
  client: HttpClient;
  server: ServerFacts;
  /** Tokens per block of the replica's prefix cache. */
  blockSize: number;
  /** Unique among all requests. */
  id: string;
  onEnd(): void;
}

/** A prompt's log-probabilities take as long as its prefill, which waits its turn. The probe notices a dead replica. */
const PREFILL_MS = 3_600_000;

export class RemoteGeneration {
  readonly #request: GenerateRequest;
  readonly #host: GenerationHost;
  readonly #stream: GenerationStream;
  readonly #calls = new Map<number, ChoiceCall>();
  readonly #whole: boolean;
  readonly #stopped = new AbortController();
  #bodies: CompletionBodies | null = null;
  #promptLogprobs: readonly (TokenLogprobs | null)[] | null = null;
  #preferences: Preference[] | null = null;
  /** The prompt's log-probabilities are here, if they were asked for. */
  #launched = false;
  #prefilled = false;
  /** null: not known yet. */
  #cachedTokens: number | null;

  constructor(request: GenerateRequest, host: GenerationHost) {
    this.#request = request;
    this.#host = host;
    this.#whole = needsWholeReply(request);
    // A prompt that fills no block cannot come from the cache.
    this.#cachedTokens = request.promptTokenIds.length <= host.blockSize ? 0 : null;
    this.#stream = new GenerationStream(request.n, (index) => this.#cancel(index));
  }

  get generation(): Generation {
    return this.#stream;
  }

  /** The replica is gone. */
  lose(why: string): void {
    const finish: Finish = { reason: "error", stopReason: null, fault: "lost", message: why };
    this.#stopped.abort();
    for (const call of [...this.#calls.values()]) call.lose(why);
    this.#failAll(finish); // those that have not begun
  }

  /** To be called once. It may end at once. */
  async start(): Promise<void> {
    const { sampling, constraint } = this.#request;
    if (!this.#host.server.flywheel && leavesNoFirstToken(sampling)) {
      // vLLM would generate a token that is not allowed.
      const { message } = new NoLegalTokenError(0, forbiddingControls(sampling, 0, constraint !== null));
      return this.#failAll({ reason: "error", stopReason: null, fault: "contradiction", message });
    }
    try {
      this.#bodies = new CompletionBodies(this.#request, this.#host.server, this.#host.id, !this.#whole);
      if (this.#request.sampling.promptLogprobs !== null && !(await this.#fetchPromptLogprobs())) return;
      if (this.#request.legalSets !== null && !(await this.#fetchPreferences(this.#request.legalSets))) return;
    } catch (error) {
      const message = (error as Error).message;
      if (!(error instanceof NotExpressible)) return this.#failAll({ reason: "error", stopReason: null, message });
      const product = productOf(this.#host.server);
      const text = `The engine behind this server (${product}) cannot do what ${message} asks for.`;
      return this.#failAll({ reason: "error", stopReason: null, fault: "refused", message: text });
    }
    this.#launched = true;
    this.#launch(0);
    if (this.#cachedTokens !== null) this.#launchRest();
  }

  #launchRest(): void {
    for (let index = 1; index < this.#request.n; index++) this.#launch(index);
  }

  #launch(index: number): void {
    if (!this.#stream.isLive(index) || this.#calls.has(index)) return;
    const { client, server } = this.#host;
    const onTokens: OnTokens = (tokens, finish, cached) => this.#onTokens(index, tokens, finish, cached);
    const call = { request: this.#request, body: this.#bodies!.of(index), isWhole: this.#whole };
    this.#calls.set(index, new ChoiceCall(client, server, call, onTokens));
  }

  #onTokens(index: number, tokens: SampledToken[], finish: Finish | null, cached: number | null): void {
    if (finish !== null) this.#calls.delete(index);
    const isFirst = !this.#prefilled;
    if (isFirst && tokens.length === 0 && finish?.reason === "error") {
      // What the replica refuses for one choice it refuses for all.
      if (this.#calls.size === 0) this.#failAll(finish);
    } else if (isFirst) {
      this.#prefilled = true;
      this.#cachedTokens ??= cached;
      this.#stream.push({
        type: "prefill",
        cachedTokens: this.#cachedTokens,
        promptLogprobs: this.#promptLogprobs,
        ...(this.#preferences === null ? {} : { preferences: this.#preferences }),
      });
    } else if (index === 0 && this.#cachedTokens === null && cached !== null) {
      this.#cachedTokens = cached;
      this.#stream.push({ type: "usage", cachedTokens: cached });
    }
    this.#stream.push({ type: "tokens", index, tokens, finish });
    if (isFirst && index === 0) this.#launchRest();
    if (this.#stream.ended) this.#host.onEnd();
  }

  /** false: the request has ended. */
  async #fetchPromptLogprobs(): Promise<boolean> {
    const { server, id } = this.#host;
    const { promptTokenIds, sampling } = this.#request;
    const found = await this.#fetch(promptLogprobsBody(this.#request, server, id));
    if (found === null) return false;
    const logprobs = found.choices?.[0]?.prompt_logprobs;
    if (!logprobs) throw new Error("the engine returns no log-probabilities of the prompt");
    this.#promptLogprobs = promptLogprobs(logprobs, promptTokenIds, sampling.promptLogprobs!);
    this.#cachedTokens = found.usage?.prompt_tokens_details?.cached_tokens ?? 0;
    return true;
  }

  /** false: the request has ended. */
  async #fetchPreferences(legalSets: readonly (Int32Array | null)[]): Promise<boolean> {
    const { server, id } = this.#host;
    const { promptTokenIds } = this.#request;
    const first = promptTokenIds.length - legalSets.length;
    const preferences: Preference[] = [];
    for (const [i, legal] of legalSets.entries()) {
      const found = await this.#fetch(distributionBody(this.#request, server, id, first + i));
      if (found === null) return false;
      const logprobs = found.choices?.[0]?.logprobs;
      if (!logprobs) throw new Error("the engine returns no log-probabilities");
      preferences.push(preferenceOf(logprobs, promptTokenIds[first + i]!, legal));
      if (i === 0) this.#cachedTokens = found.usage?.prompt_tokens_details?.cached_tokens ?? 0;
    }
    this.#preferences = preferences;
    return true;
  }

  /** A completion that is not streamed. null: there is none, and the request has ended. */
  async #fetch(body: string): Promise<WireCompletion | null> {
    const { client, server } = this.#host;
    let reply: Reply;
    try {
      const options = { body, timeoutMs: PREFILL_MS, signal: this.#stopped.signal };
      reply = await client.whole("POST", "/v1/completions", options);
    } catch (error) {
      const message = (error as Error).message;
      this.#failAll({ reason: "error", stopReason: null, fault: "lost", message });
      return null;
    }
    if (reply.status !== 200) {
      this.#failAll(finishOfReply(reply, this.#request, server));
      return null;
    }
    return parseReply(reply.text) ?? {};
  }

  #failAll(finish: Finish): void {
    for (let index = 0; index < this.#request.n; index++) {
      if (!this.#calls.has(index)) this.#stream.push({ type: "tokens", index, tokens: [], finish });
    }
    if (this.#stream.ended) this.#host.onEnd();
  }

  #cancel(index: number | null): void {
    if (index === null) {
      this.#stopped.abort();
      for (const call of this.#calls.values()) call.abort();
      this.#calls.clear();
      this.#host.onEnd();
      return;
    }
    this.#calls.get(index)?.abort();
    this.#calls.delete(index);
    // The others may be waiting for the first choice.
    if (index === 0 && this.#launched) this.#launchRest();
  }
}
