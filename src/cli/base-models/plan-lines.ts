// A memory plan in words, for `flywheel show` and `flywheel serve --estimate`.

import { fits, type MemoryPlan } from "../../app/memory-plan.ts";
import { bytesText, countText } from "../../system/number-text.ts";

export function planLines(plan: MemoryPlan): string[] {
  const { family, parameters, weightType, weightBytes, cacheBytes, cacheBytesPerToken, cacheTokens } = plan;
  const context =
    plan.servedTokens < plan.contextTokens
      ? `${plan.servedTokens} tokens of the model's ${plan.contextTokens}`
      : `${plan.contextTokens} tokens`;
  const share = `${bytesText(plan.totalBytes)} of this machine's ${bytesText(plan.machineBytes)}`;
  return [
    `family     ${family}, ${countText(parameters)} parameters`,
    `weights    ${bytesText(weightBytes)} as ${weightType} (--dtype)`,
    `cache      ${bytesText(cacheBytes)} for ${cacheTokens} tokens, ${bytesText(cacheBytesPerToken)} each (--kv-cache-memory-bytes)`,
    `context    ${context} (--max-model-len)`,
    `memory     ${share}, besides about 150 MB for Node and ONNX Runtime: ${verdict(plan)}`,
  ];
}

function verdict(plan: MemoryPlan): string {
  if (fits(plan)) return "fits";
  const others = plan.weightType === "float32" ? "--dtype int8, " : plan.weightType === "int8" ? "--dtype int4, " : "";
  return `does not fit: try ${others}a smaller --kv-cache-memory-bytes or a smaller model`;
}
