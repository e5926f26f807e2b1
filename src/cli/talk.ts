// Talks to a server in the terminal: one question, or a conversation until Ctrl-D. Ctrl-C stops the current answer.
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { isConnectionFault } from "../client/http.ts";
import { OperatorError } from "../errors/faults.ts";
import type { ServerAddress } from "../store/local-key.ts";
import { type ChatMessage, type ChatTarget, streamReply } from "./chat-client.ts";
import { readNumber, unreachable } from "./server-target.ts";

export interface TalkOptions {
  system?: string;
  maxTokens?: string;
  temperature?: string;
}

export function addTalkOptions(command: Command): Command {
  return command
    .option("--system <TEXT>", "system message")
    .option("--max-tokens <N>", "maximum length of the answer in tokens")
    .option("--temperature <T>", "0 for the most likely answer");
}

/** Without a question, it is a conversation. `model` undefined: the server's. Resolves when the person has left. */
export async function talk(
  { baseUrl, apiKey }: ServerAddress,
  model: string | undefined,
  question: readonly string[],
  options: TalkOptions,
): Promise<void> {
  const base = baseUrl.replace(/\/+$/, "");
  const target = {
    url: base.endsWith("/v1") ? base : `${base}/v1`,
    apiKey,
    model,
    maxTokens: readNumber(options.maxTokens, "--max-tokens"),
    temperature: readNumber(options.temperature, "--temperature"),
  };
  const history: ChatMessage[] = options.system === undefined ? [] : [{ role: "system", content: options.system }];
  if (question.length === 0) return converse(target, history);
  const stop = new AbortController();
  const onSignal = () => stop.abort();
  process.once("SIGINT", onSignal);
  try {
    await answer(target, [...history, { role: "user", content: question.join(" ") }], stop);
  } finally {
    process.off("SIGINT", onSignal);
  }
}

async function converse(target: ChatTarget, history: ChatMessage[]): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout, prompt: "> " });
  let answering: AbortController | null = null;
  terminal.on("SIGINT", () => (answering === null ? terminal.close() : answering.abort()));
  terminal.prompt();
  for await (const line of terminal) {
    if (line.trim() !== "") {
      const question = { role: "user", content: line };
      answering = new AbortController();
      try {
        const content = await answer(target, [...history, question], answering);
        history.push(question, { role: "assistant", content });
      } catch (error) {
        // The conversation continues without the question that the server refused.
        if (!(error instanceof OperatorError)) throw error;
        console.error(`flywheel: ${error.message.replace(/\s*\n\s*/g, " ")}`);
        // A script that pipes in questions does not see the message, so the exit status reports it.
        if (!process.stdin.isTTY) process.exitCode = 1;
      }
      answering = null;
    }
    terminal.prompt();
  }
  process.stdout.write("\n");
}

/** Prints the answer as it arrives. Aborting `stop` ends it and keeps the text so far. Throws OperatorError if the server refuses or is not there. */
async function answer(target: ChatTarget, messages: readonly ChatMessage[], stop: AbortController): Promise<string> {
  let text = "";
  let begun = false;
  try {
    for await (const piece of streamReply(target, messages, stop.signal)) {
      begun = true;
      const dimmed = piece.kind === "reasoning" && process.stdout.isTTY && !process.env.NO_COLOR;
      process.stdout.write(dimmed ? `\u001b[2m${piece.text}\u001b[22m` : piece.text);
      text += piece.kind === "content" ? piece.text : "";
    }
  } catch (error) {
    if (!stop.signal.aborted) {
      if (begun) process.stdout.write("\n");
      throw isConnectionFault(error) ? unreachable(target.url, error) : error;
    }
  }
  process.stdout.write("\n");
  return text;
}
