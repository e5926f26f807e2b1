import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { loadSamplingDefaults, NEUTRAL_DEFAULTS } from "./generation-defaults.ts";

function folder(config: object | null): string {
  const path = mkdtempSync(join(tmpdir(), "flywheel-defaults-"));
  if (config !== null) writeFileSync(join(path, "generation_config.json"), JSON.stringify(config));
  return path;
}

const model = { temperature: 0.6, top_p: 0.95, max_new_tokens: 100, eos_token_id: [2, 3] };
const load = (generationConfig: string, override: Record<string, unknown> = {}, own: object | null = model) =>
  loadSamplingDefaults({ modelFolder: folder(own), configEosTokenIds: [7], generationConfig, override });

it("applies the operator's values over the model's file", () => {
  expect(load("auto")).toEqual({
    ...NEUTRAL_DEFAULTS,
    temperature: 0.6,
    topP: 0.95,
    maxNewTokens: 100,
    eosTokenIds: [2, 3],
  });
  expect(load("auto", { temperature: 0, top_k: 5 })).toMatchObject({ temperature: 0, topP: 0.95, topK: 5 });
  expect(load("auto", {}, null)).toEqual({ ...NEUTRAL_DEFAULTS, eosTokenIds: [7] });
});

it("keeps the model's end-of-sequence ids whichever file supplies the values", () => {
  expect(load("vllm")).toEqual({ ...NEUTRAL_DEFAULTS, eosTokenIds: [2, 3] });
  expect(load(folder({ temperature: 0.1 }))).toEqual({ ...NEUTRAL_DEFAULTS, temperature: 0.1, eosTokenIds: [2, 3] });
});

it("refuses invalid values", () => {
  expect(() => load("auto", { temperature: "hot" })).toThrow(/override-generation-config.*temperature/s);
});
