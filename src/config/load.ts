// Builds the effective configuration. A flag beats the environment, which beats the YAML file, which beats the default.
// Every error names the source of the value, so that a typo in a file does not look like a typo in a flag.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { OperatorError } from "../errors/faults.ts";
import { isJsonObject } from "../json/json.ts";
import type { Option } from "./option.ts";
import { type Config, envName, flagName, OPTIONS, type OptionName } from "./options.ts";

export interface ConfigSources {
  /** The flags that were given, by option name. */
  flags?: Partial<Record<OptionName, unknown>>;
  env?: Record<string, string | undefined>;
  /** Path of the YAML file. */
  file?: string | undefined;
}

export function loadConfig(sources: ConfigSources = {}): Config {
  const file = sources.file === undefined ? new Map<string, unknown>() : readFile(sources.file);
  const config: Record<string, unknown> = {};
  for (const name of Object.keys(OPTIONS) as OptionName[]) {
    const option = OPTIONS[name] as Option<unknown>;
    const flag = sources.flags?.[name];
    const env = fromEnv(name, option, sources.env ?? {});
    if (flag !== undefined) {
      config[name] = parsed(option, flag, `--${flagName(name)}`);
    } else if (env !== undefined) {
      config[name] = parsed(option, env.value, env.name);
    } else if (file.has(name)) {
      config[name] = parsed(option, file.get(name), `${sources.file}: ${flagName(name)}`);
    } else {
      config[name] = option.default;
    }
  }
  checkRanks(config as Config);
  checkDatabase(config as Config);
  checkRole(config as Config);
  return config as Config;
}

/** The configuration for display: without defaults, with secrets masked. */
export function shownConfig(config: Config): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const name of Object.keys(OPTIONS) as OptionName[]) {
    const option = OPTIONS[name] as Option<unknown>;
    const value = config[name];
    if (JSON.stringify(value) !== JSON.stringify(option.default)) shown[flagName(name)] = option.secret ? "***" : value;
  }
  return shown;
}

/** Fails early if new models' adapters could not be served. Otherwise this would surface only after the weights are read. */
function checkRanks({ training, loraRank, maxLoraRank }: Config): void {
  if (!training || loraRank <= maxLoraRank) return;
  const fix = `use --lora-rank ${maxLoraRank} or --max-lora-rank ${loraRank}`;
  throw new OperatorError(`--lora-rank ${loraRank} exceeds --max-lora-rank ${maxLoraRank}: ${fix}`);
}

function checkDatabase({ database, databaseListenUrl }: Config): void {
  if (databaseListenUrl === null || database !== null) return;
  throw new OperatorError("--database-listen-url needs --database");
}

function checkRole({ role, database, training }: Config): void {
  if (role === "all") return;
  if (database === null) {
    throw new OperatorError(`--role ${role} needs a database that servers share: give --database postgres://…`);
  }
  if (role === "worker" && !training) throw new OperatorError("--role worker runs training jobs: remove --no-training");
}

function parsed(option: Option<unknown>, raw: unknown, where: string): unknown {
  try {
    return option.parse(raw);
  } catch (error) {
    const given = option.secret ? "" : ` (got ${JSON.stringify(raw)})`;
    throw new OperatorError(`${where} ${(error as Error).message}${given}`, { cause: error });
  }
}

function fromEnv(name: string, option: Option<unknown>, env: Record<string, string | undefined>) {
  for (const variable of [envName(name), ...option.alsoEnv]) {
    const value = env[variable];
    if (value !== undefined && value !== "") return { name: variable, value };
  }
  return undefined;
}

/** Keys may be written max-model-len or max_model_len. Unknown keys are refused. */
function readFile(path: string): Map<string, unknown> {
  let document: unknown;
  try {
    // Loaded on demand, because most servers start without a file.
    const { parse } = createRequire(import.meta.url)("yaml") as typeof import("yaml");
    document = parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new OperatorError(`cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
  if (document === null) return new Map();
  if (!isJsonObject(document)) throw new OperatorError(`${path} must be a mapping of option names to values`);
  const names = new Map(Object.keys(OPTIONS).map((name) => [flagName(name), name]));
  const values = new Map<string, unknown>();
  for (const [key, value] of Object.entries(document)) {
    const name = names.get(key.replaceAll("_", "-"));
    if (name === undefined) throw new OperatorError(`${path}: unknown option ${key}; see docs/reference/flags.md`);
    if (values.has(name)) {
      throw new OperatorError(`${path}: ${flagName(name)} appears twice, once with dashes and once with underscores`);
    }
    if (value !== null) values.set(name, value);
  }
  return values;
}
