// The command line: `flywheel serve | chat | tokens | train | models | demo`. Each command adds itself; errors that a
// person can fix are printed as one line, everything else with its stack.
import { Command } from "commander";
import { OperatorError } from "../errors/operator-error.ts";
import { PACKAGE_VERSION } from "../system/version.ts";
import { addChatCommand } from "./chat.command.ts";
import { dashed } from "./option-flags.ts";
import { addServeCommand } from "./serve.command.ts";
import { addTokensCommand } from "./tokens.command.ts";
import { addTrainingCommands } from "./training-commands.ts";

export function createProgram(): Command {
  const program = new Command("flywheel")
    .description("Serve a language model over the OpenAI/vLLM dialect, and train it from scored conversations.")
    .version(PACKAGE_VERSION)
    .showHelpAfterError("(add --help for the options)");
  addServeCommand(program);
  addChatCommand(program);
  addTokensCommand(program);
  addTrainingCommands(program);
  return program;
}

export async function main(argv: readonly string[]): Promise<void> {
  // ONNX Runtime would report its use to its makers, and leave a device id and log files behind. Read when the library
  // is loaded, and from the process's own environment: a thread's is a copy.
  process.env.ORT_DISABLE_TELEMETRY ??= "1";
  process.stdout.on("error", endWithReader);
  try {
    await createProgram().parseAsync(argv.map(dashed));
  } catch (error) {
    if (error instanceof OperatorError) {
      console.error(`flywheel: ${error.message}`);
    } else {
      console.error("flywheel:", error);
    }
    process.exitCode = 1;
  }
}

/** What nobody reads need not be said: `flywheel chat … | head -1`. A server goes on (serve.command.ts). */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  process.exit();
}
