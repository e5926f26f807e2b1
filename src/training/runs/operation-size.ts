// What an operation of a run will leave on disk, at most: set aside when it is accepted.

import { type Command, isPass, type PassCommand } from "./operation.ts";

/** Base64 of a float32 value. */
const RESULT_BYTES = 16 / 3;
const VALUE_BYTES = 4;

/** A token id and a comma. */
const ID_BYTES = 8;

/** What the result of a pass has beside lists, and a matrix beside its id. */
const OTHER_BYTES = 1024;
const MATRIX_BYTES = 128;

/** `step`: what a step takes. `gradients`: those of one pass. */
export function operationBytes(command: Command, { step, gradients }: { step: number; gradients: number }): number {
  if (isPass(command)) return passBytes(command) + (command.kind === "forward_backward" ? gradients : 0);
  return command.kind === "save_state" ? 0 : step;
}

/** The file of log-probabilities, and the result. */
function passBytes({ matrices, wantsLogprobs, wantsTokenIds }: PassCommand): number {
  let bytes = OTHER_BYTES;
  for (const { id, shape } of matrices) {
    bytes += 2 * (MATRIX_BYTES + 3 * id.length);
    if (wantsLogprobs) bytes += Math.ceil((VALUE_BYTES + RESULT_BYTES) * shape[0] * shape[1]);
    if (wantsTokenIds) bytes += ID_BYTES * shape[0];
  }
  return bytes;
}
