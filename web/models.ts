// The names that a request may give as `model`, for the lists of the page. Asked for after signing in, when a lost server is
// back, and when a training job has made a new step.
import { effect, signal } from "@preact/signals";
import { getJson, recoveries } from "./server.ts";
import { apiKey } from "./session.ts";

export interface ModelRow {
  id: string;
  /** The base model of an adapter or a policy; null for the base itself. */
  parent: string | null;
  max_model_len: number | null;
}

/** The base model first. Empty until the server has answered. */
export const models = signal<readonly ModelRow[]>([]);

export async function loadModels(): Promise<void> {
  models.value = (await getJson<{ data: ModelRow[] }>("/models")).data;
}

export function followModels(): void {
  effect(() => {
    recoveries.value;
    if (apiKey.value === null) return;
    loadModels().catch(() => {}); // server.ts has noted a refused key or a lost server
  });
}
