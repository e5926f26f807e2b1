// POST /v1/structured_outputs/inspect: what a constraint allowed at each token of an output and, with the prompt, what the
// model would have liked instead.

import type { FastifyInstance } from "fastify";
import { type Static, Type } from "typebox";
import { invalidCombination, invalidValue } from "../../errors/service-error.ts";
import { GrammarInspector, type Inspection } from "../../grammar/grammar-inspector.ts";
import { tokenVocabulary } from "../../grammar/match/token-vocabulary.ts";
import { givingWay } from "../../pacing/turns.ts";
import type { LikelyToken, Preference } from "../../sampling/token-logprobs.ts";
import { REPLY_MARKERS } from "../../text/create-reply-parser.ts";
import { TokenTextWalk } from "../../text/token-text.ts";
import { answer, type PrepareContext, type PreparedAnswer } from "../generation/answer.ts";
import { constraintRefusal, grammarFor, readOutputShape } from "../generation/constraint.ts";
import { ResponseFormat, StructuredOutputs, samplingFields } from "../generation/fields.schema.ts";
import { buildRun, type GenerationPlan } from "../generation/generation.ts";
import { floored } from "../generation/reply.ts";
import { toSamplingParams } from "../generation/sampling.ts";
import { principalOf } from "../http/auth.ts";
import { asClientErrors } from "../http/errors.ts";
import type { ModelLease } from "../models/model-registry.ts";
import { route } from "../route.ts";
import { nullable, orNull, readBody } from "../schema/body.ts";
import type { Service } from "../service.ts";

const MOST_TOKENS = 4096;
/** Probabilities that one question may ask of the engine: tokens of the output times vocabulary. */
const MOST_PROBABILITIES = 16_000_000;

const Ids = Type.Array(Type.Integer({ minimum: 0 }));

const InspectRequest = Type.Object(
  {
    model: orNull(Type.String()),
    structured_outputs: orNull(StructuredOutputs),
    response_format: orNull(ResponseFormat),
    tokens: orNull(Ids, { description: "The output as token ids, from where the constraint begins; or send text." }),
    text: orNull(Type.String()),
    request_id: samplingFields.request_id,
    prompt_token_ids: orNull(Ids, { description: "What the output followed. With it, the reply has probabilities." }),
  },
  { title: "StructuredOutputsInspectRequest" },
);

const Likely = Type.Object({ token: Type.Integer(), token_string: Type.String(), logprob: Type.Number() });

const InspectReply = Type.Object(
  {
    object: Type.Literal("structured_outputs.inspection"),
    model: Type.String(),
    may_end: Type.Boolean({ description: "The output may end after its last token." }),
    positions: Type.Array(
      Type.Object({
        token: Type.Integer(),
        token_string: Type.String(),
        allowed: Type.Boolean({ description: "Whether the token is legal. After one that is not, nothing follows." }),
        legal: Type.Integer({ description: "Number of legal tokens." }),
        forced: Type.Boolean({ description: "Only one token was legal." }),
        may_end: Type.Boolean({ description: "The output could have ended before this token." }),
        logprob: Type.Optional(Type.Number({ description: "Without the constraint." })),
        legal_mass: Type.Optional(
          Type.Number({ description: "The model's probability of all legal tokens together." }),
        ),
        likeliest_legal: Type.Optional(nullable(Likely)),
        likeliest_illegal: Type.Optional(nullable(Likely)),
      }),
    ),
  },
  { title: "StructuredOutputsInspection" },
);

type Body = Static<typeof InspectRequest>;

export function registerInspect(app: FastifyInstance, service: Service): void {
  const { tokenizer } = service.text;
  const inspector = new GrammarInspector(() =>
    tokenVocabulary(tokenizer, service.engine.info.vocabSize, REPLY_MARKERS),
  );
  app.addHook("onClose", () => inspector.close());

  app.post(
    "/v1/structured_outputs/inspect",
    route("inference", "What a constraint allowed at each token of an output, and what the model preferred", {
      ...{ body: InspectRequest, reply: InspectReply },
    }),
    (request, reply) =>
      answer(service, request, reply, async () => {
        const { value: body } = readBody(InspectRequest, request.body ?? null);
        const tokens = checkedTokens(body, await tokensOf(body, service, principalOf(request).id), service);
        return {
          ...{ body: { model: body.model, request_id: body.request_id }, choices: 1, ignored: [] },
          prepare: (context) => prepareInspection({ service, inspector, body, tokens }, context),
        };
      }),
  );
}

interface Asked {
  service: Service;
  inspector: GrammarInspector;
  body: Body;
  tokens: readonly number[];
}

/** With a prompt, one generation scores the output: it computes prompt and output like any other, and is then done. */
async function prepareInspection(
  { service, inspector, body, tokens }: Asked,
  context: PrepareContext,
): Promise<PreparedAnswer> {
  const { model } = context;
  const { positions, mayEnd } = await look({ service, inspector, body, tokens }, context);
  const prompt = body.prompt_token_ids ?? null;
  let preferences: readonly Preference[] | null = null;
  return {
    runs: prompt === null || positions.length === 0 ? [] : [scoringRun(service, model, prompt, tokens, positions)],
    logprobs: 0,
    reply: {
      accept(_run, output) {
        if (output.type === "prefill") preferences = output.preferences ?? null;
      },
      async toJson() {
        const shown = await presentPositions(service, tokens, positions, preferences);
        const inspection = { object: "structured_outputs.inspection", model: model.name, may_end: mayEnd };
        return JSON.stringify({ ...inspection, positions: shown });
      },
    },
  };
}

/** Of more tokens than can be looked at, some may be missing. */
async function tokensOf({ tokens, text }: Body, { text: model }: Service, client: string): Promise<readonly number[]> {
  if (tokens != null) return tokens;
  if (text == null) throw invalidCombination("Send the output as tokens or as text.", "tokens");
  const beginning = text.slice(0, (MOST_TOKENS + 1) * model.longestToken);
  return asClientErrors(() => model.encode(beginning, { addSpecialTokens: false, maxTokens: MOST_TOKENS }, client));
}

function checkedTokens(
  { prompt_token_ids: prompt }: Body,
  ids: readonly number[],
  { engine }: Service,
): readonly number[] {
  const { vocabSize, maxModelLen } = engine.info;
  if (ids.length > MOST_TOKENS) throw invalidValue(`At most ${MOST_TOKENS} tokens can be looked at.`, "tokens");
  if (ids.some((id) => id >= vocabSize)) throw invalidValue(`Token ids must be below ${vocabSize}.`, "tokens");
  if (!prompt) return ids;
  const total = prompt.length + ids.length;
  const mostScored = Math.floor(MOST_PROBABILITIES / vocabSize);
  if (prompt.length === 0) throw invalidValue("prompt_token_ids must not be empty.", "prompt_token_ids");
  if (prompt.some((id) => id >= vocabSize)) {
    throw invalidValue(`Token ids must be below ${vocabSize}.`, "prompt_token_ids");
  }
  if (total >= maxModelLen) {
    throw invalidValue(
      `Prompt and output may have ${maxModelLen - 1} tokens together, not ${total}.`,
      "prompt_token_ids",
    );
  }
  if (ids.length > mostScored) {
    throw invalidValue(`With a prompt, at most ${mostScored} tokens can be looked at.`, "tokens");
  }
  return ids;
}

/** Nothing once `stopped` aborts. */
async function look(
  { service, inspector, body, tokens }: Asked,
  { client, stopped }: PrepareContext,
): Promise<Inspection> {
  const wanted = readOutputShape(body);
  if (wanted === null) throw invalidCombination("Send structured_outputs or response_format.", "structured_outputs");
  const nothing = { positions: [], mayEnd: false };
  const { grammar } = await grammarFor(service, { ...wanted, reasoning: null }, { client, stopped });
  if (grammar === null) return nothing;
  const { eosTokenId } = service.text.tokenizer;
  const stopTokenIds = [...(eosTokenId === null ? [] : [eosTokenId]), ...service.defaults.eosTokenIds];
  try {
    return (await inspector.inspect({ grammar, stopTokenIds, tokens }, client.id, stopped)) ?? nothing;
  } catch (error) {
    throw constraintRefusal(error);
  }
}

/** Its prefill tells what the model preferred at each position. */
function scoringRun(
  service: Service,
  model: ModelLease,
  prompt: readonly number[],
  tokens: readonly number[],
  positions: Inspection["positions"],
): GenerationPlan {
  const counts = { maxTokens: 1, logprobs: null, promptLogprobs: null };
  const { request, choices } = buildRun(service, {
    body: {},
    promptTokenIds: [...prompt, ...tokens.slice(0, positions.length)],
    n: 1,
    sampling: toSamplingParams({ temperature: 0 }, service, counts),
    model,
    compiled: { grammar: null, constraint: null },
    ...{ top: null, tokensAsIds: false, tokensOnly: true },
  });
  return { request: { ...request, legalSets: positions.map(({ mask }) => mask) }, choices };
}

async function presentPositions(
  { text: { tokenizer } }: Service,
  tokens: readonly number[],
  positions: Inspection["positions"],
  preferences: readonly Preference[] | null,
) {
  const walk = new TokenTextWalk(tokenizer);
  const giveWay = givingWay();
  const shown = [];
  for (const [i, { legal, forced, mayEnd: may_end, allowed }] of positions.entries()) {
    await giveWay();
    const token = tokens[i]!;
    const wishes = preferences === null ? {} : presentPreference(preferences[i]!, walk);
    const token_string = walk.advance(token).token;
    shown.push({ token, token_string, allowed, legal, forced, may_end, ...wishes });
  }
  return shown;
}

/** `walk` is at the position. */
function presentPreference({ logprob, legalMass, likeliestLegal, likeliestIllegal }: Preference, walk: TokenTextWalk) {
  const likely = (token: LikelyToken | null) =>
    token && { token: token.id, token_string: walk.text(token.id), logprob: floored(token.logprob) };
  return {
    ...{ logprob: floored(logprob), legal_mass: legalMass },
    ...{ likeliest_legal: likely(likeliestLegal), likeliest_illegal: likely(likeliestIllegal) },
  };
}
