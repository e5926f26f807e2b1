// A memory plan in words, for `flywheel show` and `flywheel serve --estimate`.

import { fits, type MemoryPlan } from "../../app/memory-plan.ts";
import { bytesText, countText } from "../../system/text.ts";

export function planLines(plan: MemoryPlan): string[] {
  const { family, parameters, engines, weightType, weightBytes, cacheBytes, cacheBytesPerToken, cacheTokens } = plan;
  const times = engines === 1 ? "" : `, with the maps of ${engines} engines (--data-parallel-size)`;
  return [
    `family     ${family}, ${countText(parameters)} parameters`,
    `weights    ${bytesText(weightBytes)} as ${weightType} (--dtype)${times}`,
    `cache      ${bytesText(cacheBytes)} for ${cacheTokens} tokens, ${bytesText(cacheBytesPerToken)} each (--kv-cache-memory-bytes)`,
    `context    ${contextText(plan)}`,
    `memory     ${memoryText(plan)}`,
  ];
}

/** How long a sequence may be. */
export function contextText({ servedTokens, contextTokens, usualTokens }: MemoryPlan): string {
  if (servedTokens === contextTokens) return `${contextTokens} tokens (--max-model-len)`;
  const part = `${servedTokens} tokens of the model's ${contextTokens} (--max-model-len)`;
  if (usualTokens === contextTokens) return part;
  const factors = servedTokens > usualTokens ? "long" : "short";
  return `${part}, with the ${factors} factors of LongRoPE: up to ${usualTokens} it takes the short ones`;
}

/** How much of the machine's memory the process takes at most, and whether that fits. */
export function memoryText(plan: MemoryPlan): string {
  const { servingBytes, loadingBytes, machineBytes } = plan;
  const parts = `${bytesText(servingBytes)} with a full cache, ${bytesText(loadingBytes)} while loading`;
  return `${parts}; this machine has ${bytesText(machineBytes)}: ${verdict(plan)}`;
}

function verdict(plan: MemoryPlan): string {
  if (fits(plan)) return "fits";
  const others = plan.weightType === "float32" ? "--dtype int8, " : plan.weightType === "int8" ? "--dtype int4, " : "";
  return `does not fit: try ${others}a smaller --kv-cache-memory-bytes or a smaller model`;
}
