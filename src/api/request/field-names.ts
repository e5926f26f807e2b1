// Errors of a chat that another dialect was translated into name the fields of that dialect.
import { ServiceError } from "../../errors/service-error.ts";

/** `names`: a field of the chat → what the dialect calls it. Positions inside a field differ, so they are left out. */
export async function inTermsOf<T>(names: Readonly<Record<string, string>>, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.param === null) throw error;
    const name = names[error.param.split(".", 1)[0]!];
    if (name === undefined) throw error;
    const { code, message, retryAfter, cause } = error;
    throw new ServiceError(code, message, { param: name, cause, ...(retryAfter === null ? {} : { retryAfter }) });
  }
}
