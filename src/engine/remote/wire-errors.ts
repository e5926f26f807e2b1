// How a choice ends when a server answers with an error: before the stream with a status, or inside it with an event.

import { forbiddingControls } from "../../sampling/controls.ts";
import { NoLegalTokenError } from "../../sampling/errors.ts";
import type { Finish, GenerateRequest } from "../contract.ts";
import type { Reply } from "./http-client.ts";
import { parseReply, type ServerFacts, type WireError } from "./vllm-dialect.ts";

/** A status other than 200. The body is an error object, or anything else where a proxy answers. */
export function finishOfReply(reply: Reply, { adapter }: GenerateRequest, server: ServerFacts): Finish {
  const { status } = reply;
  const error = parseReply(reply.text)?.error ?? { message: reply.text.slice(0, 200) };
  const text = error.message || `status ${status}`;
  const failed = { reason: "error", stopReason: null, message: text } as const;
  if (status === 404 && adapter !== null) return { ...failed, fault: "unloaded" };
  if (status === 400 || status === 413 || status === 422) {
    return { ...failed, fault: "refused", message: refusal(text, error.param ?? null, server) };
  }
  // The others are the operator's mistakes: a wrong key, a wrong URL.
  return status === 429 || status >= 500 ? { ...failed, fault: "lost" } : failed;
}

export interface FailedChoice {
  request: GenerateRequest;
  server: ServerFacts;
  /** Tokens that it has sent. */
  position: number;
}

/** An error event inside the stream. `code` is a status. */
export function finishOfEvent(error: WireError, choice: FailedChoice): Finish {
  const { request, server } = choice;
  const failed = { reason: "error", stopReason: null, message: error.message ?? "no reason given" } as const;
  const status = Number(error.code ?? 500);
  if (server.flywheel) {
    // An engine that fails one request goes on.
    if (status !== 400) return status === 500 ? failed : { ...failed, fault: "lost" };
    // It finds during generation that no token is left. Its words are ours.
    return { ...failed, fault: error.param === "structured_outputs" ? "constraint" : "contradiction" };
  }
  if (status === 400) return { ...failed, fault: "refused", message: refusal(failed.message, null, server) };
  const isGivenUp = status === 500 && (failed.message === GIVEN_UP || failed.message === RAISED);
  // Keys and values that did not arrive here may arrive elsewhere.
  if (!isGivenUp || request.extra?.kvTransferParams) return { ...failed, fault: "lost" };
  return request.constraint === null ? failed : { ...failed, ...constraintFault(failed.message, choice) };
}

/**
 * What vLLM says when it ends one request and goes on with the others: its grammar, or a transfer, failed in the engine;
 * or something raised before the engine had it. When the engine itself fails, the message is another one.
 */
const GIVEN_UP = "Internal server error";
const RAISED = "";

/** The request would fail in the same way everywhere. */
function constraintFault(
  message: string,
  { request, server, position }: FailedChoice,
): Pick<Finish, "fault" | "message"> {
  const engine = `The engine behind this server (${productOf(server)})`;
  if (message === RAISED) {
    const why = "Its grammar compiler may not know something in structured_outputs";
    return { fault: "refused", message: `${engine} refuses the request without a reason. ${why}; its log says more.` };
  }
  const controls = forbiddingControls(request.sampling, position, true);
  if (controls.length === 1) return { fault: "constraint", message: `${engine} broke the constraint and gave up.` };
  return { fault: "contradiction", message: new NoLegalTokenError(position, controls).message };
}

export function productOf({ flywheel, version }: ServerFacts): string {
  return `${flywheel ? "Flywheel" : "vLLM"} ${version.join(".")}`;
}

function refusal(text: string, param: string | null, server: ServerFacts): string {
  const isLogprobs =
    param === "logprobs" || param === "prompt_logprobs" || /max.allowed.*logprobs|logprobs.*max/.test(text);
  const hint = isLogprobs ? " Its --max-logprobs is smaller than this server's." : "";
  return `The engine behind this server (${productOf(server)}) refuses the request: ${text}${hint}`;
}
