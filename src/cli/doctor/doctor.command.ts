// `flywheel doctor --engine-url URL`: checks live replicas before Flywheel sends them requests, and says what to change.
// It takes the options of `flywheel serve` that matter to it, so that both see the same configuration.

import type { Command } from "commander";
import { loadConfig } from "../../config/load.ts";
import type { OptionName } from "../../config/options.ts";
import { OperatorError } from "../../errors/operator-error.ts";
import { addOptionFlags, givenFlags } from "../option-flags.ts";

interface DoctorOptions {
  engineUrl: string[];
  engineApiKey?: string;
  config?: string;
  json?: boolean;
}

const SERVE_OPTIONS: readonly OptionName[] = [
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
      "Check that vLLM servers are fit to do Flywheel's work, and say what to change. Give the options of serve.",
    )
    .requiredOption("--engine-url <URL...>", "base URL of a vLLM server; may be repeated")
    .option("--engine-api-key <KEY>", "key of these servers [FLYWHEEL_ENGINE_API_KEY]")
    .option("--config <FILE.yaml>", "read options from a file [FLYWHEEL_CONFIG]")
    .option("--json", "print JSON");
  addOptionFlags(command, SERVE_OPTIONS);
  command.action(async (options: DoctorOptions) => {
    const config = loadConfig({
      flags: givenFlags(command),
      env: process.env,
      file: options.config ?? (process.env.FLYWHEEL_CONFIG || undefined),
    });
    const apiKey = options.engineApiKey ?? (process.env.FLYWHEEL_ENGINE_API_KEY || null);
    const urls = options.engineUrl.map(checkedUrl);
    // Imported here, so that --help and the other commands start quickly.
    const { examineReplicas } = await import("./doctor.ts");
    const isFit = await examineReplicas(urls, apiKey, config, options.json ?? false);
    if (!isFit) process.exitCode = 1;
  });
}

function checkedUrl(url: string): string {
  if (/^https?:\/\//i.test(url) && URL.canParse(url)) return url;
  throw new OperatorError(`--engine-url must look like http://10.0.0.5:8000, not ${url}`);
}
