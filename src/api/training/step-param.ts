// Reads a step from a path: a number or "latest".

import { ServiceError } from "../../errors/service-error.ts";

export function stepFrom(text: string): number | "latest" {
  if (text === "latest") return text;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new ServiceError("unknown_checkpoint", `${text} is not a step; use a number or "latest".`);
}
