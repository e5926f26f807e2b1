// The command line. Each command registers itself. Errors that the operator can fix are printed as one line, all others
// with a stack.
import { Command } from "commander";
import { OperatorError } from "../errors/faults.ts";
import { PACKAGE_VERSION } from "../system/package.ts";
import { addBaseModelCommands } from "./base-models/base-models.command.ts";
import { addCompletionCommand } from "./completion.command.ts";
import { addDemoCommand } from "./demo.command.ts";
import { addDoctorCommand } from "./doctor/doctor.command.ts";
import { dashed } from "./flags.ts";
import { addInitCommand } from "./init.command.ts";
import { addOpenCommand } from "./open.command.ts";
import { addPoliciesCommand } from "./policies.command.ts";
import { addServeCommand } from "./serve.command.ts";
import { addStatusCommand } from "./status/status.command.ts";
import { addChatCommand, addRunCommand } from "./talk.ts";
import { addTokensCommand } from "./tokens.command.ts";
import { addTrainCommand } from "./train.command.ts";

// Faults of files and folders that the operator can mend, in one line with what to do. Commands that know more about a file say it
// themselves (OperatorError).

const FIXES: Readonly<Record<string, string>> = {
  EACCES: "run the command as the owner, or choose another place",
  EPERM: "run the command as the owner, or choose another place",
  EROFS: "choose a place that can be written",
  ENOSPC: "free some space, or choose another place",
  EDQUOT: "free some space, or choose another place",
  ENOTDIR: "give a folder",
  EISDIR: "give a file",
};

/** null: the fault is of another kind. */
export function fileFault(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined || !Object.hasOwn(FIXES, code)) return null;
  return `${message}: ${FIXES[code]}`;
}

export function createProgram(): Command {
  const program = new Command("flywheel")
    .description("Serve a language model over the OpenAI/vLLM API, and train it from scored conversations.")
    .version(PACKAGE_VERSION)
    .showHelpAfterError("(add --help to see the options)");
  addServeCommand(program);
  addRunCommand(program);
  addOpenCommand(program);
  addChatCommand(program);
  addTokensCommand(program);
  addTrainCommand(program);
  addPoliciesCommand(program);
  addStatusCommand(program);
  addDoctorCommand(program);
  addBaseModelCommands(program);
  addInitCommand(program);
  addDemoCommand(program);
  addCompletionCommand(program);
  return program;
}

export async function main(argv: readonly string[]): Promise<void> {
  // Turns off ONNX Runtime's telemetry, which also leaves a device id and log files behind. The library reads the variable
  // when it loads, from the process's environment. A worker thread has only a copy of that.
  process.env.ORT_DISABLE_TELEMETRY ??= "1";
  process.stdout.on("error", endWithReader);
  try {
    await createProgram().parseAsync(argv.map(dashed));
  } catch (error) {
    const line = error instanceof OperatorError ? error.message : fileFault(error);
    if (line !== null) console.error(`flywheel: ${line}`);
    else console.error("flywheel:", error);
    process.exitCode = 1;
  }
}

/** Exits quietly when the reader of stdout is gone: `flywheel chat … | head -1`. A server keeps running (serve.command.ts). */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  process.exit();
}
