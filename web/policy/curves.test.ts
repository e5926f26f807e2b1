import { expect, it } from "vitest";
import { type Columns, chartsOf, metricsOf, smoothed, together, withRows } from "./curve-charts.ts";
import { curveQuery, curveSettingsFrom } from "./curve-settings.ts";

it("keeps its settings in the address, without defaults", () => {
  const shown = { smoothing: 0.6, isLog: true, pattern: "^kl_|loss", keys: ["kl/a,b", "loss"], others: ["p", "q"] };
  const settings = { ...shown, x: "gradient_step" as const };
  expect(curveSettingsFrom(curveQuery(settings))).toEqual(settings);
  const defaults = { x: "step", smoothing: 0, isLog: false, pattern: "", keys: [], others: [] };
  // what others keep there stays
  expect(curveQuery({ ...settings, ...defaults, x: "step" }, "sort=-mean&log=1&with=z")).toBe("sort=-mean");
  expect(curveSettingsFrom("x=moon&smooth=9&log=yes")).toEqual(defaults);
  expect(curveQuery(curveSettingsFrom(""))).toBe("");
});

it("shows the main charts, with the splits of the reward in one", () => {
  const columns = {
    step: [0, 1],
    "train/reward": [null, 1],
    "val/reward": [0, 1],
    reward: [null, 1],
    loss: [null, 2],
    x: [1, 1],
  };
  expect(chartsOf([columns], "", []).map(({ title, keys }) => [title, keys])).toEqual([
    ["reward", ["train/reward", "val/reward"]],
    ["loss", ["loss"]],
  ]);
  expect(chartsOf([{ gradient_step: [1], reward: [1] }], "", [])[0]!.keys).toEqual(["reward"]);
  expect(chartsOf([{ step: [0], loss: [null] }], "", [])).toEqual([]);
});

it("shows what a pattern finds", () => {
  const columns = { step: [0], kl_div: [1], kl_old_new_k3: [1], loss: [1], "kl/none": [null] };
  expect(chartsOf([columns], "^KL", []).map(({ title }) => title)).toEqual(["kl_div", "kl_old_new_k3"]);
  expect(chartsOf([columns], "old_new", [])[0]!.meaning).toContain("policy that wrote its rollouts");
  expect(() => chartsOf([columns], "(", [])).toThrow(SyntaxError);
});

it("adds rows below, with gaps where a metric is missing", () => {
  const page = (columns: Record<string, (number | null)[]>, next: number) => ({ columns, next, has_more: false });
  const before = page({ gradient_step: [1, 2], loss: [5, 4] }, 7);
  const more = page({ gradient_step: [3], entropy: [1] }, 9);
  expect(withRows(before, more, "gradient_step")).toEqual(
    page({ gradient_step: [1, 2, 3], loss: [5, 4, null], entropy: [null, null, 1] }, 9),
  );
});

it("shows the columns that were chosen, of whichever source has them", () => {
  const sources: Columns[] = [
    { step: [0], loss: [1], entropy: [null] },
    { step: [0], entropy: [2], kl_div: [1] },
  ];
  expect(metricsOf(sources)).toEqual(["entropy", "kl_div", "loss"]);
  expect(chartsOf(sources, "", ["entropy", "gone"]).map(({ keys }) => keys)).toEqual([["entropy"]]);
});

it("puts several sources on one axis", () => {
  expect(
    together([
      [1, 2, 5],
      [2, 3],
    ]),
  ).toEqual({
    xs: [1, 2, 3, 5],
    rows: [
      [0, 1, -1, 2],
      [-1, 0, 1, -1],
    ],
  });
  expect(together([])).toEqual({ xs: [], rows: [] });
});

it("smooths without filling gaps", () => {
  expect(smoothed([1, null, 3], 0.5)).toEqual([1, null, 2]);
  expect(smoothed([1, 3], 0)).toEqual([1, 3]);
});
