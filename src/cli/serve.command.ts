// `flywheel serve`: starts a server, prints its address and a curl command to try it, and drains on SIGTERM and Ctrl-C.
import type { Command } from "commander";
import { memoryPlan } from "../app/memory-plan.ts";
import { findModel } from "../app/model-files.ts";
import type { StartedServer } from "../app/serve.ts";
import { type Config, OPTIONS } from "../config/options.ts";
import { OperatorError } from "../errors/faults.ts";
import { createLog } from "../observe/log.ts";
import { planLines } from "./base-models/plan-lines.ts";
import { addOptionFlags, flagWithSeveralValues, givenConfig, givenFlags } from "./flags.ts";
import { startHere } from "./servers.ts";

export function addServeCommand(program: Command): void {
  const command = program
    .command("serve")
    .description("Serve a model. Without options, serves the bundled model on http://127.0.0.1:8000.")
    .argument("[model]", "same as --model")
    .option(
      "--config <FILE.yaml>",
      "read options from a file; flags and environment variables take precedence [FLYWHEEL_CONFIG]",
    )
    .option("--estimate", "print how much memory the model would take, without reading its weights, and exit");
  addOptionFlags(command);
  command.addHelpText("after", HELP_EXAMPLES);
  command.action(async (model: string | undefined, options: { estimate?: boolean }) => {
    outliveReaders();
    const flags = givenFlags(command);
    const config = givenConfig(command, model === undefined || flags.model !== undefined ? {} : { model });
    const list =
      config.model === OPTIONS.model.default && flags.model === undefined && flagWithSeveralValues(process.argv);
    if (list) {
      throw new OperatorError(
        `${list} takes every value up to the next flag, so it may have swallowed the model: ` +
          "put the model first, or use --model (--model bundled for the bundled one)",
      );
    }
    if (options.estimate) return estimate(config);
    const stopOnSignal = listenForSignals();
    const server = await startHere(config);
    announce(server);
    // On a terminal somebody reads it now. In a log it would be a key for whoever reads that.
    const link = process.stdout.isTTY ? await server.link() : null;
    if (link !== null) console.log(`open ${link}`);
    await stopOnSignal(server);
  });
}

const HELP_EXAMPLES = `
Examples:
  flywheel serve                                    the bundled model
  flywheel serve ./my-model --port 0                a checkpoint folder, on any free port
  flywheel serve model.gguf                         a GGUF file
  flywheel serve org/name --api-key secret          a model from the Hugging Face cache or hub
  flywheel tokens create --name ci --lifetime 30d   a token for it

You can also set every option with an environment variable (in brackets) or in a YAML file (--config).`;

async function estimate(config: Config): Promise<void> {
  const { folder, name } = await findModel(config, createLog({ level: "warn", format: "text" }), false);
  console.log(`model      ${name}`);
  for (const line of planLines(await memoryPlan(folder, config))) console.log(line);
}

function announce({ url, token, service }: StartedServer): void {
  if (token?.first) console.log(`your first token, with every scope (shown once): ${token.secret}`);
  console.log(`listening on ${url}`);
  if (service.config.role === "worker") {
    service.log.info("ready for training jobs", { model: service.models.baseName });
    return;
  }
  const secret = token?.secret ?? "$FLYWHEEL_API_KEY";
  const [target, socket] = url.startsWith("unix:") ? ["http://localhost", ` --unix-socket ${url.slice(5)}`] : [url, ""];
  const body = '{"messages":[{"role":"user","content":"Say hello."}],"max_tokens":32}';
  const quote = token === null ? '"' : "'";
  console.log(
    `curl -s${socket} ${target}/v1/chat/completions -H ${quote}Authorization: Bearer ${secret}${quote} ` +
      `-H 'Content-Type: application/json' -d '${body}'`,
  );
  const hint = service.toolCallHint;
  const tools = hint === null ? {} : { toolCalls: hint };
  service.log.info("ready", { model: service.models.baseName, ...service.engine.info, ...tools });
}

/**
 * Keeps the server running when its output cannot be written: the reader left (`flywheel serve | head -1`), the terminal
 * was closed, or the log's disk is full.
 */
function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners("error").on("error", () => {});
}

/**
 * The returned function resolves after a clean stop. A second signal, or one before the server is up, kills the process.
 * Process 1 of a container cannot kill itself with a signal, so it stops as soon as it has started.
 */
function listenForSignals(): (server: StartedServer) => Promise<void> {
  let first: NodeJS.Signals | null = null;
  let drain: ((signal: NodeJS.Signals) => void) | null = null;
  const listen = (signal: NodeJS.Signals) => {
    const atOnce = first !== null || drain === null;
    first ??= signal;
    if (!atOnce) return drain!(signal);
    // Not process.exit: it would end the engine's thread inside the runtime, which aborts with a core dump.
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  };
  process.on("SIGTERM", listen);
  process.on("SIGINT", listen);
  return (server) =>
    new Promise((resolve, reject) => {
      drain = (signal) => {
        server.service.log.info("draining", { signal });
        server.close().then(resolve, reject);
      };
      if (first !== null) drain(first);
    });
}
