// The caller's policies and their steps.
import type { Checkpoint, TrainableModel } from "../src/client/types.ts";
import { getJson } from "./server.ts";

/** The oldest first. */
export async function listPolicies(signal?: AbortSignal): Promise<TrainableModel[]> {
  const rows: TrainableModel[] = [];
  for (let after: string | null = null; ; after = rows.at(-1)!.id) {
    const page: { data: TrainableModel[]; has_more: boolean } = await getJson("/preview/models", {
      query: { limit: 100, after },
      signal,
    });
    rows.push(...page.data);
    if (!page.has_more) return rows;
  }
}

/** Numbers of all steps of a policy, the oldest first. */
export async function stepsOf(policy: string, signal?: AbortSignal): Promise<number[]> {
  const steps: number[] = [];
  for (let after: string | null = null; ; ) {
    const path = `/preview/models/${policy}/checkpoints`;
    const page: { data: Checkpoint[]; has_more: boolean } = await getJson(path, {
      query: { order: "asc", limit: 100, after },
      signal,
    });
    steps.push(...page.data.map(({ step }) => step));
    if (!page.has_more) return steps;
    after = page.data.at(-1)!.id;
  }
}
