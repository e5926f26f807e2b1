// Builds what the engine gets and what turns its output into text: one GenerateRequest, and one ChoiceOutput per choice. The
// last step before the engine, shared by both dialects.

import type { GenerateRequest } from "../../engine/contract.ts";
import type { SamplingParams } from "../../sampling/sampling-params.ts";
import { noText, OutputText } from "../../text/output-text.ts";
import type { ReasoningParser } from "../../text/reasoning/reasoning-parser.ts";
import type { ReplyParser } from "../../text/reply-parser.ts";
import { StopStrings } from "../../text/stop-strings.ts";
import { TokenTextWalk } from "../../text/token-text.ts";
import type { Tokenizer } from "../../text/tokenizer-contract.ts";
import type { CompiledConstraint } from "../request/constraint.compile.ts";
import type { SharedFields } from "../request/sampling.schema.ts";
import { ChoiceOutput } from "./choice-output.ts";
import { type EngineArgFields, engineArgs } from "./engine-args.ts";
import type { ServedModel } from "./served-model.ts";

type OutputFields = Omit<SharedFields, keyof EngineArgFields> & EngineArgFields;

export interface RunSpec {
  body: OutputFields;
  promptTokenIds: readonly number[];
  n: number;
  sampling: SamplingParams;
  model: ServedModel;
  compiled: CompiledConstraint;
  /** Alternatives per token; null: no log probabilities. */
  top: number | null;
  tokensAsIds: boolean;
  parser: () => ReplyParser;
  thoughtMeter: () => ReasoningParser | null;
  /** Special tokens the parser wants to see. */
  shownTokenIds?: readonly number[];
  /** Nobody reads the text, and no stop string looks at it. */
  tokensOnly?: boolean;
  /** --allowed-engine-args. */
  allowedArgs: readonly string[];
  /** More parameters for other engines, beside those of engine-args.ts. */
  extra?: Readonly<Record<string, unknown>>;
}

export interface Run {
  request: GenerateRequest;
  choices: ChoiceOutput[];
}

export function buildRun(tokenizer: Tokenizer, spec: RunSpec): Run {
  const { body, sampling, promptTokenIds } = spec;
  const stops = new StopStrings(stopList(body.stop));
  const choices = Array.from(
    { length: spec.n },
    (_, index) =>
      new ChoiceOutput({
        index,
        text: spec.tokensOnly ? noText : outputText(tokenizer, spec, stops),
        parser: spec.parser(),
        thoughtMeter: spec.thoughtMeter(),
        logprobs:
          spec.top === null ? null : { walk: new TokenTextWalk(tokenizer, { asIds: spec.tokensAsIds }), top: spec.top },
      }),
  );
  const request: GenerateRequest = {
    promptTokenIds,
    n: spec.n,
    sampling,
    adapter: spec.model.adapter,
    cacheSalt: body.cache_salt ?? null,
    priority: Number(body.priority ?? 0n),
    legalSets: null,
    ...spec.compiled,
    ...extraOf(spec),
  };
  return { request, choices };
}

function outputText(tokenizer: Tokenizer, { body, ...spec }: RunSpec, stops: StopStrings): OutputText {
  return new OutputText(tokenizer, {
    promptTokenIds: spec.promptTokenIds,
    skipSpecialTokens: body.skip_special_tokens ?? true,
    shownTokenIds: spec.shownTokenIds ?? [],
    spacesBetweenSpecialTokens: body.spaces_between_special_tokens ?? true,
    keepLeadingSpace: spec.compiled.grammar !== null,
    stops,
    includeStop: body.include_stop_str_in_output ?? false,
    minTokens: spec.sampling.minTokens,
  });
}

export function stopList(stop: SharedFields["stop"]): readonly string[] {
  return stop === undefined || stop === null ? [] : [stop].flat();
}

function extraOf(spec: RunSpec): Pick<GenerateRequest, "extra"> {
  const extra = { ...spec.extra, ...engineArgs(spec.body, spec.allowedArgs) };
  return Object.keys(extra).length > 0 ? { extra } : {};
}
