// Draws a training log as an SVG: node plot.mjs WORK/tune-log.jsonl loss.svg (after `npm run build`). One curve is the loss of
// the training batches, with a point every fifty steps (finishing: ten). The other is the loss on held-out replies,
// interpolated between its measurements.

import { readFileSync, writeFileSync } from "node:fs";
import { drawChart } from "../../../dist/cli/draw.js";

const [log, image] = process.argv.slice(2);
if (image === undefined) throw new Error("usage: node plot.mjs LOG.jsonl IMAGE.svg");
const entries = readFileSync(log, "utf8").trim().split("\n").map(JSON.parse);
const losses = entries.filter((entry) => entry.loss !== undefined);
const measured = entries.filter((entry) => entry.heldout_reply_loss !== undefined);
const stride = losses[0].step;

function heldOutAt(step) {
  const after = measured.findIndex((entry) => entry.step >= step);
  const [high, low] = [measured.at(after), measured.at(Math.max(0, after - 1))];
  if (high.step === low.step) return high.heldout_reply_loss;
  const share = Math.min(1, (step - low.step) / (high.step - low.step));
  return low.heldout_reply_loss + share * (high.heldout_reply_loss - low.heldout_reply_loss);
}

const lines = [{ name: "training batches", values: losses.map((entry) => entry.loss) }];
if (measured.length > 1)
  lines.push({ name: "held-out replies", values: losses.map((_, index) => heldOutAt(index * stride)) });
const top = Math.ceil(2 * Math.max(...lines.flatMap(({ values }) => values))) / 2;
writeFileSync(image, drawChart(lines, { x: "step", y: "loss", top, stride }));
