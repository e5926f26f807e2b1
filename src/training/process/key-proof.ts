// How server and trainer prove to each other that they know a secret, without sending it: each answers the other's random
// challenge. trainer/flywheel_trainer/channel.py is the other side.

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** Both challenges of a connection. */
export interface Challenges {
  trainer: string;
  server: string;
}

const CHALLENGE = /^[0-9a-f]{64}$/;

export function newChallenge(): string {
  return randomBytes(32).toString("hex");
}

/** Whether the other side sent a challenge. Any other text could be made to look like another one. */
export function isChallenge(text: unknown): text is string {
  return typeof text === "string" && CHALLENGE.test(text);
}

/** `role`: whose proof it is, so that nobody can send ours back to us. */
export function proofOf(secret: string, role: "server" | "trainer", { trainer, server }: Challenges): string {
  return createHmac("sha256", secret).update(`${role} ${trainer} ${server}`).digest("hex");
}

export function isProof(found: unknown, secret: string, role: "server" | "trainer", challenges: Challenges): boolean {
  const wanted = Buffer.from(proofOf(secret, role, challenges));
  const given = Buffer.from(typeof found === "string" ? found : "");
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}
