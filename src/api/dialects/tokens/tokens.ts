// POST /inference/v1/generate: token ids in, token ids out, as clients of vLLM that train models call it.

import type { FastifyInstance } from "fastify";
import { invalidCombination, invalidValue } from "../../../errors/service-error.ts";
import { isJsonObject } from "../../../json/json.ts";
import { fitTokens, outputBudget } from "../../../text/prompt-length.ts";
import { answer, type PrepareContext, type PreparedAnswer } from "../../generation/answer.ts";
import { grammarFor, readOutputShape } from "../../generation/constraint.ts";
import { buildRun, stopList } from "../../generation/generation.ts";
import {
  checkLogprobAmount,
  checkLogprobCount,
  checkLogprobSpelling,
  checkPriority,
  checkStops,
  checkStream,
  checkTokenIds,
  lengthRules,
  logprobAmount,
  readChoiceCount,
  thinkingLimitAfter,
} from "../../generation/limits.ts";
import { replyFacts } from "../../generation/reply.ts";
import { NEUTRAL_DEFAULTS, toSamplingParams } from "../../generation/sampling.ts";
import { bodyWithPriority } from "../../http/headers.ts";
import { route } from "../../route.ts";
import { readBody } from "../../schema/body.ts";
import type { Service } from "../../service.ts";
import { TokenChoices } from "./tokens.reply.ts";
import { type TokenBody, TokenChunk, TokenReply, TokenRequest } from "./tokens.schema.ts";

// Checks generate requests, and brings their fields into the flat form that the other dialects have.

type TokenFields = ReturnType<typeof flat>;

function validateTokens(raw: unknown, { policy }: { policy: "priority" | "fcfs" }) {
  const source = isJsonObject(raw) ? raw : {};
  checkLogprobSpelling(isJsonObject(source.sampling_params) ? source.sampling_params : {});
  const { value, ignored } = readBody(TokenRequest, raw ?? null);
  const body = flat(value);
  checkStops(body.stop);
  checkStream(body, source.stream_options);
  checkPriority(body, policy);
  if (stopList(body.stop).length > 0 && body.detokenize === false) {
    throw invalidCombination("stop needs detokenize: true, because stop strings are looked for in the text.", "stop");
  }
  if ((body.logprobs ?? 0) < -1) {
    throw invalidValue("logprobs must be 0 or more, or -1 for the whole vocabulary.", "logprobs");
  }
  return { body, ignored };
}

/** vLLM's engine looks for kv_transfer_params in extra_args, so clients send them in either place. */
function flat({ sampling_params: sampling, ...body }: TokenBody) {
  const { extra_args: extra, bad_words: badWords, ...params } = sampling;
  const { kv_transfer_params: kvTransfer, ...args } = extra ?? {};
  return {
    ...params,
    ...body,
    bad_words: badWords ?? [],
    kv_transfer_params: body.kv_transfer_params ?? (isJsonObject(kvTransfer) ? kvTransfer : null),
    engine_xargs: args,
  };
}

// Prepares a generate request for the engine. As in vLLM, sampling fields that are left out are neutral, whatever the model
// recommends. Only the ids that end an output are the model's, and max_new_tokens applies where max_tokens is left out.

async function prepareTokens(
  service: Service,
  body: TokenFields,
  { model, requestId, client, stopped }: PrepareContext,
): Promise<PreparedAnswer> {
  const { config, defaults, engine, text } = service;
  const { maxModelLen, vocabSize } = engine.info;
  const n = readChoiceCount(body.n);
  const { maxTokens } = lengthRules(body, maxModelLen);
  // A budget that is larger than the rest of the context is cut, not refused: one budget serves every turn of an episode.
  const ids = fitTokens(body.token_ids, { contextLength: maxModelLen, maxTokens: null, truncatePromptTokens: null });
  checkTokenIds(ids, vocabSize, "token_ids");
  const named = body.logprob_token_ids ?? [];
  const count = body.logprobs ?? (model.recordsForTraining || named.length > 0 ? 0 : null);
  if (named.length === 0) checkLogprobCount(count, config.maxLogprobs, vocabSize, "logprobs");
  checkLogprobCount(body.prompt_logprobs ?? null, config.maxLogprobs, vocabSize, "prompt_logprobs");
  const neutral = { text, engine, defaults: { ...NEUTRAL_DEFAULTS, eosTokenIds: defaults.eosTokenIds } };
  const chosen = toSamplingParams(body, neutral, {
    maxTokens: outputBudget({
      contextLength: maxModelLen,
      promptTokens: ids.length,
      maxTokens,
      defaultMaxTokens: body.max_tokens === null ? null : defaults.maxNewTokens,
    }),
    logprobs: count,
    promptLogprobs: body.prompt_logprobs ?? null,
  });
  const thinking = thinkingLimitAfter(() => text.tokenizer.decode(ids), body.thinking_token_budget, service);
  const sampling = { ...chosen, thinking };
  const top = sampling.logprobTokenIds?.length ?? count;
  const tokens = { maxTokens: sampling.maxTokens, promptTokens: ids.length };
  const amount = logprobAmount({ ...tokens, choices: n, top, prompt: sampling.promptLogprobs }, vocabSize);
  const step = { maxTokens: 1, promptTokens: 0, choices: n, top, prompt: null };
  const kept = body.stream === true ? logprobAmount(step, vocabSize) : amount;
  checkLogprobAmount(kept, "logprobs");
  const shape = readOutputShape(body);
  const compiled = await grammarFor(service, shape === null ? null : { ...shape, reasoning: null }, {
    client,
    stopped,
  });
  const run = buildRun(service, {
    body,
    promptTokenIds: ids,
    n,
    sampling,
    model,
    compiled,
    // The sampled token is one of the N, and shown even if N is 0. Named ids stand behind it.
    top: sampling.logprobTokenIds === null ? (count === 0 ? 1 : count) : sampling.logprobTokenIds.length + 1,
    tokensAsIds: true,
    tokensOnly: stopList(body.stop).length === 0,
  });
  const id = `generate-tokens-${requestId}`;
  const facts = replyFacts(service, body, model, { id, promptTokens: ids.length, reasoningParsed: false });
  const reply = {
    promptTokenIds: ids,
    n,
    logprobs: count !== null,
    policyVersion: model.policyVersion,
    chunkTokens: body.stream_interval ?? 1,
  };
  return { runs: [run], logprobs: kept, reply: new TokenChoices(facts, reply) };
}

export function registerGenerate(app: FastifyInstance, service: Service): void {
  app.post(
    "/inference/v1/generate",
    route("inference", "Token ids in, token ids out", { body: TokenRequest, reply: TokenReply, chunk: TokenChunk }),
    (request, reply) =>
      answer(service, request, reply, () => {
        const { body, ignored } = validateTokens(bodyWithPriority(request), service.engine.info);
        return {
          ...{ body, ignored },
          choices: readChoiceCount(body.n),
          prepare: (context) => prepareTokens(service, body, context),
        };
      }),
  );
}
