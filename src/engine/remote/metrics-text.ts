// Reads the few numbers that the fleet wants from a Prometheus page.

export interface ServerMetrics {
  /** Requests that run or wait. null: the page does not say. */
  requests: number | null;
  blockSize: number | null;
  /** Only Flywheel tells: its attention adds numbers in blocks of this many, and so does the trainer. */
  positionsPerBlock: number | null;
  cacheTokens: number | null;
  maxLoras: number | null;
  /** Seconds since 1970. */
  startedAt: string | null;
}

export function readMetrics(page: string): ServerMetrics {
  const sums = new Map<string, number>();
  const labels = new Map<string, string>();
  let startedAt: string | null = null;
  for (const line of page.split("\n")) {
    const match = LINE.exec(line);
    if (match === null) continue;
    const [, name, labelText = "", value] = match;
    if (name === "process_start_time_seconds") startedAt = value!;
    else if (name!.endsWith("_info")) labels.set(name!, labelText);
    else sums.set(name!, (sums.get(name!) ?? 0) + Number(value)); // one series for each engine behind the server
  }
  const running = sums.get("vllm:num_requests_running");
  return {
    requests: running === undefined ? null : running + (sums.get("vllm:num_requests_waiting") ?? 0),
    blockSize: labelOf(labels.get("vllm:cache_config_info"), "block_size"),
    cacheTokens: labelOf(labels.get("vllm:cache_config_info"), "kv_cache_size_tokens"),
    positionsPerBlock: labelOf(labels.get("vllm:cache_config_info"), "positions_per_block"),
    maxLoras: labelOf(labels.get("vllm:lora_requests_info"), "max_lora"),
    startedAt,
  };
}

const LINE =
  /^(process_start_time_seconds|vllm:num_requests_running|vllm:num_requests_waiting|vllm:cache_config_info|vllm:lora_requests_info)(?:\{(.*)\})? (\S+)/;

function labelOf(labels: string | undefined, name: string): number | null {
  const value = Number(new RegExp(`(?:^|,)${name}="(\\d+)"`).exec(labels ?? "")?.[1] ?? Number.NaN);
  return Number.isNaN(value) ? null : value;
}
