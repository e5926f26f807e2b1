import { describe, expect, it } from "vitest";
import { EMBEDDED_ENGINE, needing } from "../../support/needs.ts";
import { sharedServer } from "../../support/shared-server.ts";
import { type LooseResponse, says } from "../../support/test-server.ts";

const server = sharedServer();
const json = async (response: Promise<LooseResponse>) => (await response).json();

describe("operations", () => {
  it("answers health, version and load", async () => {
    const health = await server.get("/health");
    expect(health.status).toBe(200);
    expect(await health.text()).toBe("");
    expect(await json(server.get("/version"))).toEqual({ version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
    expect(await json(server.get("/load"))).toEqual({ server_load: 0 });
  });

  it("counts requests in /load while they run, whatever their number of choices", async () => {
    const response = await server.post("/v1/completions", { prompt: "go", n: 2, max_tokens: 2000, stream: true });
    expect(await json(server.get("/load"))).toEqual({ server_load: 1 });
    await response.body!.cancel();
    await expect.poll(() => json(server.get("/load"))).toEqual({ server_load: 0 });
  });

  needing(EMBEDDED_ENGINE).it("serves metrics that parse and move", async () => {
    const before = parseMetrics(await (await server.get("/metrics")).text());
    await server.chat({ messages: says("twelve chars") });
    await server.stream({ messages: says("twelve chars") });
    await server.post("/v1/chat/completions", { messages: "no" });
    const after = parseMetrics(await (await server.get("/metrics")).text());
    const moved = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    const labels = 'model_name="fake",engine="0"';
    expect(moved(`vllm:request_success_total{${labels},finished_reason="stop"}`)).toBe(2);
    expect(moved(`vllm:generation_tokens_total{${labels}}`)).toBe(26);
    expect(moved(`vllm:time_to_first_token_seconds_count{${labels}}`)).toBe(2);
    expect(moved(`vllm:e2e_request_latency_seconds_count{${labels}}`)).toBe(2);
    expect(moved(`vllm:request_queue_time_seconds_count{${labels}}`)).toBe(2);
    expect(moved(`vllm:inter_token_latency_seconds_count{${labels}}`)).toBeGreaterThan(10);
    expect(moved('http_requests_total{method="POST",handler="/v1/chat/completions",status="2xx"}')).toBe(2);
    expect(moved('http_requests_total{method="POST",handler="/v1/chat/completions",status="4xx"}')).toBe(1);
    expect(moved('flywheel_rejected_requests_total{code="invalid_body"}')).toBe(1);
    expect(after.get(`vllm:num_requests_running{${labels}}`)).toBe(0);
    const cache = [...after.keys()].find((name) => name.startsWith("vllm:cache_config_info"))!;
    const [, size, concurrency] = /kv_cache_size_tokens="(\d+)",kv_cache_max_concurrency="([\d.]+)"/.exec(cache)!;
    expect(Number(size) / Number(concurrency)).toBeCloseTo(2048);
    // Two prompts with their first tokens, and 2 x 12 steps of one token each.
    const steps = "vllm:iteration_tokens_total";
    expect(moved(`${steps}_count{${labels}}`)).toBe(26);
    expect(moved(`${steps}_bucket{le="1",${labels}}`)).toBe(24);
    expect(moved(`${steps}_bucket{le="+Inf",${labels}}`)).toBe(26);
    const computed = moved(`vllm:prompt_tokens_total{${labels}}`) - moved(`vllm:prefix_cache_hits_total{${labels}}`);
    expect(moved(`${steps}_sum{${labels}}`)).toBe(computed + 26);
  });

  needing(EMBEDDED_ENGINE).it("counts choices that wait, by reason", async () => {
    const body = { prompt: "go", n: 10, max_tokens: 1500, stream: true, temperature: 1 };
    const response = await server.post("/v1/completions", body);
    const labels = 'model_name="fake",engine="0"';
    const waiting = async () => {
      const samples = parseMetrics(await (await server.get("/metrics")).text());
      const names = ["waiting", "waiting_by_reason", "waiting_by_reason"];
      const more = ["", ',reason="capacity"', ',reason="deferred"'];
      return names.map((name, i) => samples.get(`vllm:num_requests_${name}{${labels}${more[i]}}`));
    };
    await expect.poll(waiting).toEqual([2, 2, 0]);
    await response.body!.cancel();
    await expect.poll(waiting).toEqual([0, 0, 0]);
  });
});

/** Sample name with labels → value; throws on a line that is not exposition format. */
function parseMetrics(text: string): Map<string, number> {
  const samples = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("# HELP ") || line.startsWith("# TYPE ")) continue;
    const match = /^([a-zA-Z_:][\w:]*(?:\{.*\})?) (\S+)$/.exec(line);
    if (match === null || Number.isNaN(Number(match[2]!.replace("+Inf", "Infinity").replace("Nan", "0")))) {
      throw new Error(`not a sample: ${line}`);
    }
    samples.set(match[1]!, Number(match[2]));
  }
  return samples;
}
