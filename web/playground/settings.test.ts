import { expect, it } from "vitest";
import { constraintOf, DEFAULTS, fromQuery, overrides, type Settings, toQuery } from "./settings.ts";

it("keeps a link empty while everything is as it begins", () => {
  expect(toQuery(DEFAULTS)).toBe("");
  expect(fromQuery("")).toEqual({ settings: DEFAULTS, draft: "", chat: "" });
});

it("brings every setting through a link", () => {
  const settings: Settings = {
    ...DEFAULTS,
    models: ["my-agent@14", "wandb-artifact:///e/p/my-agent:step0"],
    n: 8,
    seed: 0,
    isCoupled: false,
    system: "Be brief & kind.\nAlways.",
    params: { temperature: 0, top_p: 0.95, max_tokens: 64 },
    alternatives: 0,
    output: "regex",
    constraints: { regex: "\\d+ (a|b)%" },
    extra: '{"stop": ["\\n"]}',
    view: "tokens",
    colour: "difference",
    panel: "teach",
  };
  expect(fromQuery(`${toQuery(settings)}&q=Hi&chat=k3v9`)).toEqual({ settings, draft: "Hi", chat: "k3v9" });
  expect(constraintOf(settings)).toBe("\\d+ (a|b)%");
});

it("takes from an address only what it says", () => {
  expect(overrides("chat=k3v9&temperature=0.5&n=2")).toEqual({ n: 2, params: { temperature: 0.5 } });
  expect(overrides("chat=k3v9")).toEqual({});
});

it("gives what is wrong its default", () => {
  const wrong = "n=-3&seed=x&temperature=&view=nothing&top=1.5&m=&chat=a%20b";
  expect(fromQuery(wrong)).toEqual({ settings: DEFAULTS, draft: "", chat: "" });
});
