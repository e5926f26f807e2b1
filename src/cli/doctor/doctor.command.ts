// `flywheel doctor`: checks this machine, or live replicas (--engine-url) before Flywheel sends them requests, and the torch
// trainer (--trainer torch) before it gets a job, and says what to change. It takes the options of `flywheel serve` that
// matter to it, so that both see the same configuration.

import type { Command } from "commander";
import type { OptionName } from "../../config/options.ts";
import { addOptionFlags, givenConfig } from "../flags.ts";

const SERVE_OPTIONS: readonly OptionName[] = [
  "engineUrl",
  "engineApiKey",
  "model",
  "revision",
  "downloadDir",
  "hfToken",
  "chatTemplate",
  "chatTemplateContentFormat",
  "device",
  "python",
  "gpuMemory",
  "data",
  "host",
  "port",
  "threads",
  "kvCacheMemoryBytes",
  "maxModelLen",
  "maxLoraRank",
  "maxLogprobs",
  "dtype",
  "loraRank",
  "trainer",
  "trainerCommand",
  "trainerDtype",
  "trainingMemoryBytes",
];

export function addDoctorCommand(program: Command): void {
  const command = program
    .command("doctor")
    .description(
      "Check this machine, or vLLM servers (--engine-url) and the torch trainer (--trainer torch), and say what to change. " +
        "Give the options of serve.",
    )
    .option("--config <FILE.yaml>", "read options from a file [FLYWHEEL_CONFIG]")
    .option("--json", "print JSON");
  addOptionFlags(command, SERVE_OPTIONS);
  command.action(async (options: { json?: boolean }) => {
    const config = givenConfig(command);
    // Imported here, so that --help and the other commands start quickly.
    const { examineAll } = await import("./doctor.ts");
    const isFit = await examineAll(config, options.json ?? false);
    if (!isFit) process.exitCode = 1;
  });
}
