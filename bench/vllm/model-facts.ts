// What the requests need to know about the model that vLLM serves.
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { loadTextModel } from "../../src/text/text-model.ts";
import type { ModelFacts } from "./requests.ts";

interface ServedModels {
  data: { id: string; max_model_len: number; parent: string | null }[];
}

/** `served` is the name of the base model. */
export async function readFacts(
  url: string,
  token: string,
  folder: string,
): Promise<{ served: string; facts: ModelFacts }> {
  const reply = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${token}` } });
  const { data } = (await reply.json()) as ServedModels;
  const base = data.find(({ parent }) => parent === null)!;
  const text = await loadTextModel(folder);
  const encode = (words: string) => text.tokenizer.encode(words, { addSpecialTokens: false });
  const eosTokenId = readModelConfig(folder).eosTokenIds[0] ?? text.tokenizer.eosTokenId;
  text.close();
  return { served: base.id, facts: { encode, eosTokenId, maxModelLen: base.max_model_len } };
}
