// Options of the configuration as flags of commands.

import { statSync } from "node:fs";
import { join } from "node:path";
import { type Command, Option as Flag } from "commander";
import { loadConfig } from "../config/load.ts";
import type { Option } from "../config/option.ts";
import { type Config, envName, flagName, OPTIONS, type OptionName } from "../config/options.ts";
import { OperatorError } from "../errors/faults.ts";
import { DATABASE_FILE, openStore } from "../store/data-dir.ts";
import type { Store } from "../store/store.ts";

// Turns the table of options into command-line flags, grouped for --help, and reads back the values that were given.

/** Adds a flag for each option, or only for those named. */
export function addOptionFlags(command: Command, only = Object.keys(OPTIONS) as readonly OptionName[]): void {
  for (const name of only) {
    const option = OPTIONS[name] as Option<unknown>;
    const flag = flagName(name);
    if (option.placeholder === null) {
      const shown = option.default === true ? `--no-${flag}` : `--${flag}`;
      for (const form of [`--${flag}`, `--no-${flag}`]) {
        const made = new Flag(form, describe(name, option)).helpGroup(`${option.group}:`);
        command.addOption(form === shown ? made : made.hideHelp());
      }
    } else {
      const value = option.repeatable ? `<${option.placeholder}...>` : `<${option.placeholder}>`;
      command.addOption(new Flag(`--${flag} ${value}`, describe(name, option)).helpGroup(`${option.group}:`));
    }
  }
}

/** The options given on the command line, by name. */
export function givenFlags(command: Command): Partial<Record<OptionName, unknown>> {
  const values = command.opts() as Record<string, unknown>;
  return Object.fromEntries(Object.entries(values).filter(([name]) => name in OPTIONS));
}

/** What flags, environment and the file of --config say. `more`: as if they were flags too. */
export function givenConfig(command: Command, more: Partial<Record<OptionName, unknown>> = {}): Config {
  const { config: file } = command.opts<{ config?: string }>();
  const flags = { ...givenFlags(command), ...more };
  return loadConfig({ flags, env: process.env, file: file ?? (process.env.FLYWHEEL_CONFIG || undefined) });
}

/** The first list flag with several values in a row. Such a flag takes every value up to the next flag. */
export function flagWithSeveralValues(written: readonly string[]): string | null {
  const argv = written.map(dashed);
  const lists = (Object.keys(OPTIONS) as OptionName[]).filter((name) => OPTIONS[name].repeatable).map(flagName);
  const isValue = (word: string | undefined) => word !== undefined && !word.startsWith("-");
  const at = argv.findIndex((word, i) => lists.includes(word.slice(2)) && isValue(argv[i + 1]) && isValue(argv[i + 2]));
  return at === -1 ? null : argv[at]!;
}

/** Rewrites `--max_model_len` as `--max-model-len`. */
export function dashed(argument: string): string {
  return /^--\w[\w-]*(=|$)/.test(argument)
    ? argument.replace(/^--[\w-]+/, (name) => `--${name.slice(2).replaceAll("_", "-")}`)
    : argument;
}

function describe(name: OptionName, option: Option<unknown>): string {
  const help =
    option.placeholder === null && option.default === true ? `Disables this default: ${option.help}` : option.help;
  const initial = shownDefault(option);
  return `${help}${initial === null ? "" : ` (default ${initial})`} [${envName(name)}]`;
}

function shownDefault(option: Option<unknown>): string | null {
  const value = option.default;
  if (value === null || typeof value === "boolean" || option.secret) return null;
  const text = typeof value === "string" || typeof value === "number" ? String(value) : JSON.stringify(value);
  return text === "[]" || text === "{}" ? null : text;
}

// The store of a server, for commands that work on it directly: a data directory, or a database.

export type StorePlace = Pick<Config, "data" | "database" | "databaseListenUrl">;

/** The options that choose it. */
export const PLACE = ["data", "database"] as const;

export function storePlace(command: Command): StorePlace {
  const env = Object.fromEntries(PLACE.map((name) => [envName(name), process.env[envName(name)]]));
  return loadConfig({ flags: givenFlags(command), env });
}

/** Fails if the folder has no database, instead of creating an empty one. */
export async function withExistingStore<R>(place: StorePlace, work: (store: Store) => Promise<R>): Promise<R> {
  if (place.database === null && isMissing(join(place.data, DATABASE_FILE))) {
    const problem = `${place.data} is not the data directory of a server: it has no ${DATABASE_FILE}`;
    throw new OperatorError(`${problem}. Start a server with \`flywheel serve\`, or give its --data`);
  }
  return withStore(place, work);
}

/** An unreadable file does not count as missing; opening it reports the reason. */
function isMissing(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}

export async function withStore<R>(place: StorePlace, work: (store: Store) => Promise<R>): Promise<R> {
  const store = await openStore(place);
  try {
    return await work(store);
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    const what = place.database === null ? `data directory ${place.data}` : "database";
    throw new OperatorError(`cannot use the ${what}: ${(error as Error).message}`, { cause: error });
  } finally {
    await store.close();
  }
}
