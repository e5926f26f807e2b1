// `flywheel run [MODEL] [PROMPT]`: talks to the server that runs on the data directory. If none does, serves the model
// in this process while the person talks.
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { BUNDLED_NAME } from "../app/model-files.ts";
import { loadConfig } from "../config/load.ts";
import { OperatorError } from "../errors/faults.ts";
import type { ServerAddress } from "../store/local-key.ts";
import { addOptionFlags, givenFlags } from "./option-flags.ts";
import { addTalkOptions, type TalkOptions, talk } from "./talk.ts";
import { runningServer, whileServing } from "./while-serving.ts";

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
    const running = await runningServer(config);
    if (running !== null) return talk(running, await servedName(running, model), prompt, options);
    // Loading takes seconds, and minutes for a large model.
    if (process.stderr.isTTY) console.error("starting a server for this (`flywheel serve` keeps one ready) …");
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
