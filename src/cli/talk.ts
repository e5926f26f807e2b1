// Talks to a server in the terminal: one question, or a conversation until Ctrl-D. Ctrl-C stops the current answer.

import { existsSync } from "node:fs";
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { BUNDLED_NAME } from "../app/model-files.ts";
import { ApiError, type ChatChunk, type Message } from "../client/client.ts";
import { Connection, isConnectionFault } from "../client/http.ts";
import { OperatorError } from "../errors/faults.ts";
import type { ServerAddress } from "../store/local-key.ts";
import { addOptionFlags, givenConfig, givenFlags } from "./flags.ts";
import {
  addTargetOptions,
  asUsageErrors,
  clientFor,
  readNumber,
  serverOn,
  type TargetOptions,
  targetOf,
  unreachable,
  whileServing,
} from "./servers.ts";

/** Asks, and prints the answer. */
type Ask = (messages: Message[], stop: AbortController) => Promise<string>;

interface TalkOptions {
  system?: string;
  maxTokens?: string;
  temperature?: string;
}

function addTalkOptions(command: Command): Command {
  return command
    .option("--system <TEXT>", "system message")
    .option("--max-tokens <N>", "maximum length of the answer in tokens")
    .option("--temperature <T>", "0 for the most likely answer");
}

/** Without a question, it is a conversation. `model` undefined: the server's. Resolves when the person has left. */
async function talk(
  address: ServerAddress,
  model: string | undefined,
  question: readonly string[],
  options: TalkOptions,
): Promise<void> {
  const fields = {
    model,
    max_completion_tokens: readNumber(options.maxTokens, "--max-tokens"),
    temperature: readNumber(options.temperature, "--temperature"),
  };
  const client = clientFor(address, 0);
  const ask: Ask = (messages, stop) =>
    print(address.baseUrl, client.chatStream({ ...fields, messages }, stop.signal), stop.signal);
  const history: Message[] = options.system === undefined ? [] : [{ role: "system", content: options.system }];
  if (question.length === 0) return converse(ask, history);
  const stop = new AbortController();
  const onSignal = () => stop.abort();
  process.once("SIGINT", onSignal);
  try {
    await ask([...history, { role: "user", content: question.join(" ") }], stop);
  } finally {
    process.off("SIGINT", onSignal);
  }
}

async function converse(ask: Ask, history: Message[]): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout, prompt: "> " });
  let answering: AbortController | null = null;
  terminal.on("SIGINT", () => (answering === null ? terminal.close() : answering.abort()));
  terminal.prompt();
  for await (const line of terminal) {
    if (line.trim() !== "") {
      const question = { role: "user", content: line };
      answering = new AbortController();
      try {
        const content = await ask([...history, question], answering);
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
async function print(url: string, chunks: AsyncIterable<ChatChunk>, stop: AbortSignal): Promise<string> {
  let text = "";
  let begun = false;
  try {
    for await (const { choices } of chunks) {
      const delta = choices?.[0]?.delta ?? {};
      const reasoning = (delta.reasoning ?? delta.reasoning_content) || "";
      const dimmed = reasoning !== "" && process.stdout.isTTY && !process.env.NO_COLOR;
      const content = delta.content ?? "";
      process.stdout.write((dimmed ? `\u001b[2m${reasoning}\u001b[22m` : reasoning) + content);
      begun ||= reasoning + content !== "";
      text += content;
    }
  } catch (error) {
    if (!stop.aborted) {
      if (begun) process.stdout.write("\n");
      if (isConnectionFault(error)) throw unreachable(url, error);
      if (!(error instanceof ApiError)) throw error;
      const { status, message } = error;
      throw new OperatorError(status === 200 ? message : `the server answered ${message}`, { cause: error });
    }
  }
  process.stdout.write("\n");
  return text;
}

// `flywheel chat`: talk to a server from the terminal. With a prompt, it prints one answer. Without one, it is a
// conversation. It works with any compatible server.

interface ChatOptions extends TargetOptions, TalkOptions {
  model?: string;
}

export function addChatCommand(program: Command): void {
  const command = program
    .command("chat")
    .description("Talk to a server from the terminal.")
    .argument("[prompt...]", "one question; without it, a conversation starts")
    .option("--model <NAME>", "model or adapter; default: the server's model");
  addTalkOptions(command);
  addTargetOptions(command);
  command.action((prompt: string[], options: ChatOptions) => talk(targetOf(options), options.model, prompt, options));
}

// `flywheel run [MODEL] [PROMPT]`: talks to the server that runs on the data directory. If none does, serves the model
// in this process while the person talks.

export function addRunCommand(program: Command): void {
  const command = program
    .command("run")
    .description("Talk to a model. Serves it first if no server runs on --data.")
    .argument(
      "[MODEL]",
      "what to serve, or a name that the running server knows; default: bundled, or the server's model",
    )
    .argument("[PROMPT...]", "one question; without it, a conversation starts")
    .option("--config <FILE.yaml>", "read options of the server from a file [FLYWHEEL_CONFIG]");
  addTalkOptions(command);
  addOptionFlags(command);
  command.addHelpText("after", HELP_EXAMPLES);
  command.action(async (model: string | undefined, prompt: string[], options: TalkOptions) => {
    refuseQuestion(model);
    const config = givenConfig(command, model === undefined ? {} : { model });
    const running = await serverOn(config);
    if (running !== null) return talk(running, await servedName(running, model), prompt, options);
    // Loading takes seconds, and minutes for a large model.
    if (process.stderr.isTTY) console.error("starting a server for this (`flywheel serve` keeps one ready) …");
    const isQuiet = givenFlags(command).logLevel === undefined && !process.env.FLYWHEEL_LOG_LEVEL;
    await whileServing(isQuiet ? { ...config, logLevel: "error" } : config, (address) =>
      talk(address, undefined, prompt, options),
    );
  });
}

const HELP_EXAMPLES = `
Examples:
  flywheel run                                  a conversation with the bundled model
  flywheel run bundled "What is 12 + 30?"       one answer
  flywheel run org/name                         a model from the Hugging Face cache or hub
  flywheel run my-agent                         a policy of the running server`;

/** The name under which the running server knows a model that was given by name, folder or `bundled`. */
async function servedName(server: ServerAddress, model: string | undefined): Promise<string | undefined> {
  if (model === undefined) return undefined;
  type Models = { data: { id: string; root?: string }[] };
  const { data } = await asUsageErrors(server.baseUrl, () => new Connection(server).json<Models>("GET", "/models"));
  const wanted = model === "bundled" ? BUNDLED_NAME : model;
  const found = data.find(({ id, root }) => id === wanted || root === wanted);
  if (found) return found.id;
  const names = data.map(({ id }) => id).join(", ");
  const fix = "stop it to serve another model, or give --data and --port for a second server";
  throw new OperatorError(`the server at ${server.baseUrl} serves ${names}, not ${model}: ${fix}`);
}

/** A question in the place of the model. No model's name has spaces, unless it is a folder. */
function refuseQuestion(model: string | undefined): void {
  if (model === undefined || !/\s/.test(model) || existsSync(model)) return;
  throw new OperatorError(`the model comes before the question: flywheel run bundled ${JSON.stringify(model)}`);
}
