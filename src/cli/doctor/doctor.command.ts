// `flywheel doctor --engine-url URL`: checks live replicas before Flywheel sends them requests, and says what to change.
// It takes the options of `flywheel serve` that matter to it, so that both see the same configuration.

import type { Command } from "commander";
import { loadConfig } from "../../config/load.ts";
import type { OptionName } from "../../config/options.ts";
import { OperatorError } from "../../errors/operator-error.ts";
import { addOptionFlags, givenFlags } from "../option-flags.ts";

const SERVE_OPTIONS: readonly OptionName[] = [
  "engineUrl",
  "engineApiKey",
  "model",
  "revision",
  "downloadDir",
  "hfToken",
  "chatTemplate",
  "chatTemplateContentFormat",
  "data",
  "maxModelLen",
  "maxLoraRank",
  "maxLogprobs",
];

export function addDoctorCommand(program: Command): void {
  const command = program
    .command("doctor")
    .description(
      "Check that vLLM servers are fit to work for Flywheel, and say what to change. Give the options of serve.",
    )
    .option("--config <FILE.yaml>", "read options from a file [FLYWHEEL_CONFIG]")
    .option("--json", "print JSON");
  addOptionFlags(command, SERVE_OPTIONS);
  command.action(async (options: { config?: string; json?: boolean }) => {
    const config = loadConfig({
      flags: givenFlags(command),
      env: process.env,
      file: options.config ?? (process.env.FLYWHEEL_CONFIG || undefined),
    });
    if (config.engineUrl.length === 0) throw new OperatorError("give the server to check with --engine-url");
    // Imported here, so that --help and the other commands start quickly.
    const { examineReplicas } = await import("./doctor.ts");
    const isFit = await examineReplicas(config, options.json ?? false);
    if (!isFit) process.exitCode = 1;
  });
}
