import { expect, it } from "vitest";
import { DEFAULTS, fromQuery, type Settings, toQuery } from "./settings.ts";

it("keeps the address empty while everything is as it begins", () => {
  expect(toQuery(DEFAULTS)).toBe("");
  expect(fromQuery("")).toEqual(DEFAULTS);
});

it("brings every setting through the address", () => {
  const settings: Settings = {
    models: ["my-agent@14", "wandb-artifact:///e/p/my-agent:step0"],
    n: 8,
    seed: 0,
    isCoupled: false,
    system: "Be brief & kind.\nAlways.",
    params: { temperature: 0, top_p: 0.95, max_tokens: 64 },
    alternatives: 0,
    output: "regex",
    constraint: "\\d+ (a|b)%",
    extra: '{"stop": ["\\n"]}',
    view: "tokens",
    colour: "difference",
    panel: "teach",
    prompt: "Tell me about the sea. 🌊",
    chat: "k3v9",
  };
  expect(fromQuery(toQuery(settings))).toEqual(settings);
});

it("gives what is wrong its default", () => {
  expect(fromQuery("n=-3&seed=x&temperature=&view=nothing&top=1.5&m=&chat=a%20b")).toEqual(DEFAULTS);
});
