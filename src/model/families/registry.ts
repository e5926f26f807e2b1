// The model families that can be loaded, and how a config.json says which one it is.

import { CheckpointError } from "../checkpoint/checkpoint-file.ts";
import type { ConfigFields } from "../checkpoint/config-fields.ts";
import type { Family, FamilyName } from "./family.ts";
import { gemma2 } from "./gemma2.ts";
import { gemma3 } from "./gemma3.ts";
import { gpt2 } from "./gpt2.ts";
import { granite } from "./granite.ts";
import { llama } from "./llama.ts";
import { mistral } from "./mistral.ts";
import { olmo2 } from "./olmo2.ts";
import { phi3 } from "./phi3.ts";
import { qwen2 } from "./qwen2.ts";
import { qwen3 } from "./qwen3.ts";
import { qwen3Moe } from "./qwen3-moe.ts";
import { smollm3 } from "./smollm3.ts";

export const FAMILIES: readonly Family[] = [
  ...[llama, mistral, qwen2, qwen3, gemma2, gemma3],
  ...[olmo2, granite, smollm3, phi3, gpt2, qwen3Moe],
];

export function familyNamed(name: FamilyName): Family {
  return FAMILIES.find((family) => family.name === name)!;
}

/** The family of a config.json. Throws an error that lists the supported ones if it is none of them. */
export function familyOf(fields: ConfigFields): Family {
  const architectures = fields.texts("architectures", []);
  const modelType = fields.text("model_type", "");
  const family =
    modelType === ""
      ? FAMILIES.find((candidate) => architectures.some((name) => candidate.architectures.includes(name)))
      : FAMILIES.find((candidate) => candidate.modelTypes.includes(modelType));
  if (family === undefined) {
    const found = modelType === "" ? `architectures ${JSON.stringify(architectures)}` : `model_type "${modelType}"`;
    const supported = FAMILIES.flatMap((candidate) => candidate.modelTypes).join(", ");
    throw new CheckpointError(fields.file, `${found} is not supported (supported model types: ${supported})`);
  }
  if (architectures.length > 0 && !architectures.some((name) => family.architectures.includes(name))) {
    throw new CheckpointError(
      fields.file,
      `architecture ${architectures.join(", ")} is not a language model this can serve (expected ${family.architectures.join(" or ")})`,
    );
  }
  return family;
}
