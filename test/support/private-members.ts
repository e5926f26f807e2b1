// Reads private members of an object through the inspector, for tests that count what a long run leaves behind.

import { type Runtime, Session } from "node:inspector";

/** The value of a JavaScript expression in which `subject` is the object and `#members` are visible. Must clone as JSON. */
export async function lookInside(subject: object, expression: string): Promise<unknown> {
  const session = new Session();
  session.connect();
  Object.assign(globalThis, { subject });
  // Private names are visible only in REPL mode, which Node's types do not know.
  const request = { expression, replMode: true, returnByValue: true };
  try {
    const { result, exceptionDetails } = await new Promise<Runtime.EvaluateReturnType>((resolve, reject) => {
      session.post("Runtime.evaluate", request, (error, reply) => {
        if (error === null) resolve(reply as Runtime.EvaluateReturnType);
        else reject(error);
      });
    });
    if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description);
    return result.value;
  } finally {
    Object.assign(globalThis, { subject: undefined });
    session.disconnect();
  }
}
