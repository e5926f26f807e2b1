// What the serving page knows about the engine: the first answer with its past, then what a stream adds every second.

export interface RequestRow {
  id: string;
  who: string;
  model: string | null;
  state: "waiting" | "prefill" | "decoding";
  prompt: number;
  cached: number | null;
  output: number;
  age_ms: number;
  priority: number;
}

export interface Point {
  /** Milliseconds since 1970. */
  at: number;
  running: number;
  waiting: number;
  tokens_per_s: number;
  prompt_tokens_per_s: number;
  /** 0 to 1. */
  cache: number;
  ttft_p50: number | null;
  ttft_p99: number | null;
}

export interface Step {
  at: number;
  /** Sequences that got their next token. */
  decode: number;
  /** Tokens of prompts. */
  prefill: number;
}

export interface Snapshot {
  now: number;
  running: number;
  waiting: number;
  preemptions: number;
  cache: { used: number | null; total: number | null; fraction: number };
  prefix: { queries: number; hits: number };
  adapters: ({ name: string | null; requests: number } | null)[];
  requests: RequestRow[];
}

export interface EngineState extends Snapshot {
  history: Point[];
  steps: Step[];
}

const MOST_POINTS = 900;
const MOST_STEPS = 4096;

/** The state after one event of the stream. Unknown events change nothing. */
export function afterEvent(state: EngineState, event: string, data: string): EngineState {
  switch (event) {
    case "snapshot":
      return { ...state, ...(JSON.parse(data) as Snapshot) };
    case "point":
      return { ...state, history: [...state.history, JSON.parse(data) as Point].slice(-MOST_POINTS) };
    case "steps":
      return { ...state, steps: [...state.steps, ...(JSON.parse(data) as Step[])].slice(-MOST_STEPS) };
    default:
      return state;
  }
}

/** The newest steps of the last `ms` milliseconds as short words: d8 is 8 sequences decoded, p256 is 256 prompt tokens. */
export function tape(steps: readonly Step[], now: number, ms: number, most: number): string[] {
  return steps
    .filter(({ at }) => at > now - ms)
    .slice(-most)
    .map(({ decode, prefill }) =>
      [decode > 0 ? `d${decode}` : "", prefill > 0 ? `p${prefill}` : ""].filter(Boolean).join("+"),
    );
}

/** Output tokens per second of a request since it came. */
export function rateOf({ output, age_ms }: RequestRow): number | null {
  return output === 0 || age_ms === 0 ? null : output / (age_ms / 1000);
}
