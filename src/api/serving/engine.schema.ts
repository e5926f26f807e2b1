// What the routes that watch the engine answer.

import { Type } from "typebox";
import { nullable } from "../request/schema-parts.ts";

const Time = Type.Number({ description: "Milliseconds since 1970." });
const Count = Type.Integer();

const RequestRow = Type.Object(
  {
    id: Type.String({ description: "As in the x-request-id header of its reply." }),
    who: Type.String({ description: "The name of its token." }),
    model: nullable(Type.String()),
    state: Type.Enum(["waiting", "prefill", "decoding"]),
    prompt: Count,
    cached: nullable(Count),
    output: Count,
    choices: Count,
    age_ms: Type.Number(),
    priority: Type.Integer(),
  },
  { title: "RunningRequest" },
);

export const HistoryPointBody = Type.Object({
  at: Time,
  running: Count,
  waiting: Count,
  tokens_per_s: Type.Number(),
  prompt_tokens_per_s: Type.Number(),
  cache: Type.Number({ description: "Fraction of the key/value memory in use." }),
  ttft_p50: nullable(Type.Number({ description: "Milliseconds; null without a first token in this second." })),
  ttft_p99: nullable(Type.Number()),
});

const AdapterRow = Type.Object({
  name: nullable(Type.String()),
  requests: Count,
  idle_seconds: Type.Number({ description: "How long no request has run on it." }),
});

export const EngineBody = Type.Object(
  {
    object: Type.Literal("engine"),
    now: Time,
    running: Count,
    waiting: Count,
    preemptions: Count,
    cache: Type.Object({
      used: nullable(Type.Integer({ description: "Tokens." })),
      total: nullable(Count),
      fraction: Type.Number({ description: "0 to 1." }),
    }),
    prefix: Type.Object({ queries: Count, hits: Count }, { description: "Prompt tokens since the start." }),
    adapters: Type.Array(nullable(AdapterRow), {
      description: "One per slot; null = free. Names of policies are shown to those who ask for them, and to admins.",
    }),
    replicas: Type.Array(Type.Object({ name: Type.String(), state: Type.String(), in_flight: Count }), {
      description: "In the order of --engine-url. Admins see URLs as names.",
    }),
    requests: Type.Array(RequestRow, { description: "The caller's own, oldest first; for admins, all." }),
    history: Type.Array(HistoryPointBody, { description: "One per second, the last 900." }),
    steps: Type.Array(
      Type.Object({
        at: Time,
        decode: Type.Integer({ description: "Sequences that got their next token." }),
        prefill: Type.Integer({ description: "Tokens of prompts." }),
      }),
      { description: "The last 4,096 of an embedded engine. Empty for remote engines and several engines." },
    ),
  },
  { title: "Engine" },
);
