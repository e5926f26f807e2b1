// `flywheel run [MODEL] [PROMPT]`: talks to the server that runs on the data directory. If none does, serves the model
// in this process while the person talks.
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { BUNDLED_NAME } from "../app/model-files.ts";
import { loadConfig } from "../config/load.ts";
import type { Config } from "../config/options.ts";
import { OperatorError } from "../errors/operator-error.ts";
import { type LocalKey, readLocalKey, type ServerAddress } from "../store/local-key.ts";
import { answeringVersion } from "./answering-server.ts";
import { addOptionFlags, givenFlags } from "./option-flags.ts";
import { addTalkOptions, type TalkOptions, talk } from "./talk.ts";

interface RunOptions extends TalkOptions {
  config?: string;
}

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
  command.action(async (model: string | undefined, prompt: string[], options: RunOptions) => {
    refuseQuestion(model);
    const flags = givenFlags(command);
    const config = loadConfig({
      flags: { ...flags, ...(model === undefined ? {} : { model }) },
      env: process.env,
      file: options.config ?? (process.env.FLYWHEEL_CONFIG || undefined),
    });
    const running = readLocalKey(config.data);
    if (running !== null && (await answeringVersion(running.url)) !== null) {
      const address = addressOf(running);
      return talk(address, await servedName(address, model), prompt, options);
    }
    const isQuiet = flags.logLevel === undefined && !process.env.FLYWHEEL_LOG_LEVEL;
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

async function whileServing(config: Config, work: (address: ServerAddress) => Promise<void>): Promise<void> {
  // Imported here, so that --help and talking to a running server start quickly.
  const [{ startServer }, { loadModel }, { createTraining }] = await Promise.all([
    import("../app/serve.ts"),
    import("../app/load-model.ts"),
    import("../app/training.ts"),
  ]);
  const server = await startServer(config, loadModel, config.training ? [createTraining] : []);
  try {
    if (server.token?.first) console.error(`your first token, with every scope (shown once): ${server.token.secret}`);
    const key = readLocalKey(config.data);
    if (key === null) throw new OperatorError(`cannot talk: the server could not write its key into ${config.data}`);
    await work(addressOf(key));
  } finally {
    await server.close();
  }
}

function addressOf({ url, token }: LocalKey): ServerAddress {
  if (url.startsWith("unix:")) throw new OperatorError("cannot talk over a Unix socket: leave out --uds");
  return { baseUrl: `${url}/v1`, apiKey: token };
}

/** The name under which the running server knows a model that was given by name, folder or `bundled`. */
async function servedName({ baseUrl, apiKey }: ServerAddress, model: string | undefined): Promise<string | undefined> {
  if (model === undefined) return undefined;
  const response = await fetch(`${baseUrl}/models`, { headers: { authorization: `Bearer ${apiKey}` } });
  const { data = [] } = (await response.json()) as { data?: { id: string; root?: string }[] };
  const wanted = model === "bundled" ? BUNDLED_NAME : model;
  const found = data.find(({ id, root }) => id === wanted || root === wanted);
  if (found) return found.id;
  const names = data.map(({ id }) => id).join(", ");
  const fix = "stop it to serve another model, or give --data and --port for a second server";
  throw new OperatorError(`the server at ${baseUrl} serves ${names}, not ${model}: ${fix}`);
}

/** A question in the place of the model. No model's name has spaces, unless it is a folder. */
function refuseQuestion(model: string | undefined): void {
  if (model === undefined || !/\s/.test(model) || existsSync(model)) return;
  throw new OperatorError(`the model comes before the question: flywheel run bundled ${JSON.stringify(model)}`);
}
