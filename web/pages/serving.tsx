// What the server does right now: queue, throughput, cache, requests one by one, and the last steps of the engine.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { EngineState } from "../../src/client/types.ts";
import { follow } from "../follow.ts";
import { count, duration, number, percent } from "../format.ts";
import { Chart } from "../parts/chart.tsx";
import { useTitle } from "../parts/use-title.ts";
import { getJson } from "../server.ts";
import { facts, may } from "../server-facts.ts";
import { afterEvent, tape } from "../serving/engine-state.ts";
import { LogView } from "../serving/log-view.tsx";
import { RequestTable } from "../serving/request-table.tsx";
import { messageOf } from "../session.ts";

const TAPE_MS = 10_000;
const TAPE_STEPS = 120;

export function Serving() {
  useTitle("Serving");
  const engine = useSignal<EngineState | null>(null);
  const problem = useSignal<string | null>(null);
  useEffect(() => {
    const gone = new AbortController();
    follow(
      "/engine",
      ({ event, data }) => {
        engine.value = afterEvent(engine.value!, event, data);
      },
      gone.signal,
      async (signal) => {
        engine.value = await getJson<EngineState>("/engine", { signal });
      },
    ).catch((error: unknown) => {
      if (!gone.signal.aborted) problem.value = messageOf(error);
    });
    return () => gone.abort();
  }, []);
  return (
    <div class="serving">
      <h1>Serving</h1>
      <Facts />
      {problem.value !== null && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      {engine.value !== null && <Now engine={engine.value} />}
      {may("admin") && <LogView />}
    </div>
  );
}

function Facts() {
  const server = facts.value;
  if (server === null) return null;
  const { model, dtype, threads, limits, features, started_at } = server;
  const parts = [
    `up ${duration(Date.now() - Date.parse(started_at))}`,
    dtype,
    model.layers === null ? null : `${model.layers} × ${model.hidden_size}`,
    model.parameters === null ? null : `${number(model.parameters / 1e6)} M parameters`,
    `${count(limits.max_model_len, "token")} of context`,
    threads === null ? null : count(threads, "thread"),
    `prefix cache ${features.prefix_cache ? "on" : "off"}`,
    `version ${server.version}`,
  ];
  return (
    <p class="row muted">
      {parts
        .filter((part) => part !== null)
        .map((part) => (
          <span key={part}>{part}</span>
        ))}
    </p>
  );
}

function Now({ engine }: { engine: EngineState }) {
  const { history, prefix, cache, adapters, preemptions } = engine;
  const xs = history.map(({ at }) => at / 1000);
  const column = (
    key: "running" | "waiting" | "tokens_per_s" | "prompt_tokens_per_s" | "cache" | "ttft_p50" | "ttft_p99",
  ) => history.map((point) => point[key]);
  const words = tape(engine.steps, engine.now, TAPE_MS, TAPE_STEPS);
  return (
    <>
      <div class="charts">
        <Chart
          title="Requests"
          isTime
          xs={xs}
          series={[
            { label: "running", values: column("running"), colour: "--accent" },
            { label: "waiting", values: column("waiting"), colour: "--second" },
          ]}
        />
        <Chart
          title="Tokens per second"
          isTime
          xs={xs}
          series={[
            { label: "out", values: column("tokens_per_s"), colour: "--accent" },
            { label: "prompt", values: column("prompt_tokens_per_s"), colour: "--cold" },
          ]}
        />
        <Chart
          title="Key/value cache"
          isTime
          xs={xs}
          format={percent}
          series={[{ label: "used", values: column("cache"), colour: "--accent" }]}
        />
        <Chart
          title="Time to first token, ms"
          isTime
          xs={xs}
          series={[
            { label: "p50", values: column("ttft_p50"), colour: "--accent" },
            { label: "p99", values: column("ttft_p99"), colour: "--second" },
          ]}
        />
      </div>
      <p class="row">
        <span title="Tokens of prompts that were in the cache already">
          prefix hits <b>{prefix.queries === 0 ? "–" : percent(prefix.hits / prefix.queries)}</b>
        </span>
        {cache.used !== null && cache.total !== null && (
          <span>
            cache <b>{number(cache.used)}</b> of {number(cache.total)} tokens
          </span>
        )}
        <span title="Requests that were set aside because the cache was full, and read again later">
          preemptions <b>{number(preemptions)}</b>
        </span>
        <span>
          adapters <b>{adapters.filter((slot) => slot !== null).length}</b> of {adapters.length}
          {adapters.map((slot, i) =>
            slot === null ? null : (
              <span key={i} class="chip">
                {slot.name ?? "a policy of another workspace"} ({count(slot.requests, "request")})
              </span>
            ),
          )}
        </span>
      </p>
      <RequestTable requests={engine.requests} />
      <h2>Steps of the last 10 seconds</h2>
      <p class="tape mono">{words.length === 0 ? <span class="muted">none</span> : words.join(" ")}</p>
      <p class="muted">d8: eight answers got their next token. p256: 256 tokens of prompts were read.</p>
    </>
  );
}
