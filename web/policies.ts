// The caller's policies.
import type { TrainableModel } from "../src/client/types.ts";
import { getJson } from "./server.ts";

/** Up to a hundred, the newest first. */
export async function listPolicies(signal?: AbortSignal): Promise<TrainableModel[]> {
  const page = await getJson<{ data: TrainableModel[] }>("/preview/models", { query: { limit: 100 }, signal });
  return page.data;
}
