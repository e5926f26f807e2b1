// The model families that can be loaded, and how a config.json says which one it is.

import { CheckpointError } from "../checkpoint/checkpoint-error.ts";
import type { ConfigFields } from "../checkpoint/config-fields.ts";
import type { Family, FamilyName } from "./family.ts";
import { gemma3 } from "./gemma3.ts";
import { llama } from "./llama.ts";
import { mistral } from "./mistral.ts";
import { qwen2 } from "./qwen2.ts";
import { qwen3 } from "./qwen3.ts";

const FAMILIES: readonly Family[] = [llama, mistral, qwen2, qwen3, gemma3];

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
