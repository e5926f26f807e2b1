// `flywheel chat`: talk to a server from the terminal. With a prompt, it prints one answer. Without one, it is a
// conversation until Ctrl-D. Ctrl-C stops the current answer. It works with any compatible server.
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { isConnectionFault } from "../client/http.ts";
import { OperatorError } from "../errors/operator-error.ts";
import { type ChatMessage, type ChatTarget, streamReply } from "./chat-client.ts";
import { checkedUrl, findKey, readNumber } from "./server-target.ts";

interface ChatOptions {
  url: string;
  apiKey?: string;
  model?: string;
  system?: string;
  maxTokens?: string;
  temperature?: string;
}

export function addChatCommand(program: Command): void {
  const env = process.env;
  program
    .command("chat")
    .description("Talk to a server from the terminal.")
    .argument("[prompt...]", "one question; without it, a conversation starts")
    .option("--url <URL>", "base URL of the server", env.OPENAI_BASE_URL || "http://127.0.0.1:8000/v1")
    .option("--api-key <KEY>", "access token [FLYWHEEL_API_KEY, OPENAI_API_KEY]")
    .option("--model <NAME>", "model or adapter; default: the server's model")
    .option("--system <TEXT>", "system message")
    .option("--max-tokens <N>", "maximum length of the answer in tokens")
    .option("--temperature <T>", "0 for the most likely answer")
    .action(async (prompt: string[], options: ChatOptions) => {
      const target = readTarget(options);
      const history: ChatMessage[] = options.system === undefined ? [] : [{ role: "system", content: options.system }];
      if (prompt.length > 0) {
        const stop = new AbortController();
        process.once("SIGINT", () => stop.abort());
        await answer(target, [...history, { role: "user", content: prompt.join(" ") }], stop);
      } else {
        await converse(target, history);
      }
    });
}

function readTarget(options: ChatOptions): ChatTarget {
  const apiKey = findKey(options.apiKey);
  const base = checkedUrl(options.url).replace(/\/+$/, "");
  return {
    url: base.endsWith("/v1") ? base : `${base}/v1`,
    apiKey,
    model: options.model,
    maxTokens: readNumber(options.maxTokens, "--max-tokens"),
    temperature: readNumber(options.temperature, "--temperature"),
  };
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
      throw isConnectionFault(error)
        ? new OperatorError(`cannot reach ${target.url}: is the server running?`, { cause: error })
        : error;
    }
  }
  process.stdout.write("\n");
  return text;
}
