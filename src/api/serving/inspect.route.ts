// POST /v1/structured_outputs/inspect: what a constraint allowed at each token of an output and, with the prompt, what the
// model would have liked instead.

import type { FastifyInstance } from "fastify";
import { type Static, Type } from "typebox";
import { ServiceError } from "../../errors/service-error.ts";
import { ConstraintError } from "../../grammar/constraint.ts";
import { GrammarInspector, type Inspection } from "../../grammar/grammar-inspector.ts";
import { tokenVocabulary } from "../../grammar/match/token-vocabulary.ts";
import { givingWay } from "../../pacing/give-way.ts";
import type { TokenLogprobs } from "../../sampling/token-logprobs.ts";
import { REPLY_MARKERS } from "../../text/reply-markers.ts";
import { TokenTextWalk } from "../../text/token-text.ts";
import { clientGone } from "../http/client-gone.ts";
import { grammarFor } from "../request/constraint.compile.ts";
import { ResponseFormat, StructuredOutputs } from "../request/constraint.schema.ts";
import { readOutputShape } from "../request/constraint.wire.ts";
import { readBody } from "../request/read-body.ts";
import { toSamplingParams } from "../request/sampling-params.ts";
import { ErrorBody, nullable, orNull } from "../request/schema-parts.ts";
import { admitted } from "../run/admitted.ts";
import type { ServedModel } from "../run/served-model.ts";
import type { Service } from "../service.ts";

const MOST_TOKENS = 4096;
/** Log-probabilities that one question may ask of the engine: positions times vocabulary. */
const MOST_LOGPROBS = 16_000_000;

const Ids = Type.Array(Type.Integer({ minimum: 0 }));

const InspectRequest = Type.Object(
  {
    model: orNull(Type.String()),
    structured_outputs: orNull(StructuredOutputs),
    response_format: orNull(ResponseFormat),
    tokens: orNull(Ids, { description: "The output as token ids, from where the constraint begins; or send text." }),
    text: orNull(Type.String()),
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
    {
      config: { access: "inference" },
      schema: {
        summary: "What a constraint allowed at each token of an output, and what the model preferred",
        tags: ["text"],
        body: InspectRequest,
        response: { 200: InspectReply, 400: ErrorBody },
      },
    },
    async (request, reply) => {
      const { value: body } = readBody(InspectRequest, request.body ?? null);
      const tokens = tokensOf(body, service);
      service.assertServing();
      const gone = clientGone(reply.raw);
      return admitted(service, request, { choices: 1, model: body.model }, async (model) => {
        const inspection = await look(inspector, service, body, tokens, gone);
        const prompt = body.prompt_token_ids ?? null;
        const logprobs = prompt && (await logprobsOf(service, model, prompt, tokens, gone));
        return present(service, model, tokens, inspection, logprobs);
      });
    },
  );
}

function tokensOf(
  { tokens, text, prompt_token_ids: prompt }: Body,
  { text: { tokenizer }, engine }: Service,
): number[] {
  if ((tokens ?? null) === null && (text ?? null) === null) {
    throw new ServiceError("invalid_combination", "Send the output as tokens or as text.", { param: "tokens" });
  }
  const ids = tokens ?? tokenizer.encode(text!, { addSpecialTokens: false });
  const { vocabSize, maxModelLen } = engine.info;
  const bad = (message: string, param: string) => new ServiceError("invalid_value", message, { param });
  if (ids.length > MOST_TOKENS) throw bad(`At most ${MOST_TOKENS} tokens can be looked at.`, "tokens");
  if (ids.some((id) => id >= vocabSize)) throw bad(`Token ids must be below ${vocabSize}.`, "tokens");
  if (!prompt) return ids;
  const total = prompt.length + ids.length;
  const most = Math.min(maxModelLen - 1, Math.floor(MOST_LOGPROBS / vocabSize));
  if (prompt.length === 0) throw bad("prompt_token_ids must not be empty.", "prompt_token_ids");
  if (prompt.some((id) => id >= vocabSize)) throw bad(`Token ids must be below ${vocabSize}.`, "prompt_token_ids");
  if (total > most) throw bad(`Prompt and output may have ${most} tokens together, not ${total}.`, "prompt_token_ids");
  return ids;
}

async function look(
  inspector: GrammarInspector,
  service: Service,
  body: Body,
  tokens: number[],
  gone: AbortSignal,
): Promise<Inspection> {
  const wanted = readOutputShape(body);
  if (wanted === null) {
    throw new ServiceError("invalid_combination", "Send structured_outputs or response_format.", {
      param: "structured_outputs",
    });
  }
  const { grammar } = await grammarFor(service, { ...wanted, reasoning: null }, gone);
  if (grammar === null) return { positions: [], mayEnd: false }; // the client left
  const { eosTokenId } = service.text.tokenizer;
  const stopTokenIds = [...(eosTokenId === null ? [] : [eosTokenId]), ...service.defaults.eosTokenIds];
  try {
    return await inspector.inspect({ grammar, stopTokenIds, tokens });
  } catch (error) {
    if (!(error instanceof ConstraintError)) throw error;
    throw new ServiceError("invalid_constraint", error.message, { param: error.param, cause: error });
  }
}

/** The whole distribution before each token, without the constraint. */
async function logprobsOf(
  { engine, text: { tokenizer }, defaults }: Service,
  model: ServedModel,
  prompt: readonly number[],
  tokens: readonly number[],
  gone: AbortSignal,
): Promise<readonly (TokenLogprobs | null)[]> {
  const context = { tokenizer, vocabSize: engine.info.vocabSize, defaults, maxTokens: 1, logprobs: null };
  const sampling = toSamplingParams({ temperature: 0 }, { ...context, promptLogprobs: -1 });
  const generation = engine.generate({
    ...{ promptTokenIds: [...prompt, ...tokens], n: 1, sampling, adapter: model.adapter, cacheSalt: null, priority: 0 },
    ...{ grammar: null, constraint: null },
  });
  const abort = () => generation.abort();
  gone.addEventListener("abort", abort, { once: true });
  try {
    for await (const output of generation) {
      if (output.type === "prefill") return output.promptLogprobs!.slice(prompt.length);
      if (output.type === "tokens" && output.finish?.reason === "error") break;
    }
  } finally {
    generation.abort();
    gone.removeEventListener("abort", abort);
  }
  throw new ServiceError("engine_failed", "The engine could not score the output.");
}

async function present(
  { text: { tokenizer } }: Service,
  model: ServedModel,
  tokens: readonly number[],
  { positions, mayEnd }: Inspection,
  logprobs: readonly (TokenLogprobs | null)[] | null,
) {
  const walk = new TokenTextWalk(tokenizer);
  const giveWay = givingWay();
  const shown = [];
  for (const [i, { legal, forced, mayEnd: may_end, allowed, mask }] of positions.entries()) {
    await giveWay();
    const token = tokens[i]!;
    const wishes = logprobs?.[i] ? preferences(logprobs[i], mask, walk) : {};
    const token_string = walk.advance(token).token;
    shown.push({ token, token_string, allowed, legal, forced, may_end, ...wishes });
  }
  return { object: "structured_outputs.inspection" as const, model: model.name, may_end: mayEnd, positions: shown };
}

/** `walk` is at the position. The ids of `logprobs` are sorted, best first. */
function preferences({ logprob, topIds, topLogprobs }: TokenLogprobs, mask: Int32Array | null, walk: TokenTextWalk) {
  const isLegal = (id: number) => mask === null || (mask[id >>> 5]! & (1 << (id & 31))) !== 0;
  let mass = 0;
  let legal: number | null = null;
  let illegal: number | null = null;
  for (const [i, id] of topIds.entries()) {
    if (isLegal(id)) {
      mass += Math.exp(topLogprobs[i]!);
      legal ??= i;
    } else illegal ??= i;
  }
  const likely = (i: number | null) =>
    i === null ? null : { token: topIds[i]!, token_string: walk.text(topIds[i]!), logprob: topLogprobs[i]! };
  const likeliest = { likeliest_legal: likely(legal), likeliest_illegal: likely(illegal) };
  return { logprob, legal_mass: Math.min(1, mass), ...likeliest };
}
