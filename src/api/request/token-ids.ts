// Checks that a prompt's token ids are in the model's vocabulary.
import { ServiceError } from "../../errors/service-error.ts";

export function checkTokenIds(ids: readonly number[], vocabSize: number, param: string): void {
  const outside = ids.find((id) => id < 0 || id >= vocabSize);
  if (outside !== undefined) {
    const message = `Token id ${outside} is out of vocabulary: this model has ${vocabSize} tokens.`;
    throw new ServiceError("invalid_value", message, { param });
  }
}
