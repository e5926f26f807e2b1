// Every option in the manifests exists, and every value is one that the server takes.

import { describe, expect, it } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { envName, flagName, OPTIONS, type OptionName } from "../../src/config/options.ts";
import { manifestsIn, readCompose, readKubernetes, readManifest } from "./manifests.ts";

const NAMES = Object.keys(OPTIONS) as OptionName[];
const FILES = ["compose", "systemd", "kubernetes"].flatMap(manifestsIn);

describe.each(FILES)("%s", (file) => {
  const text = readManifest(file);

  it("names only variables of options", () => {
    const variables = [...text.matchAll(/\bFLYWHEEL_[A-Z_]+\b/g)].map(String);
    expect(variables.filter((name) => !NAMES.map(envName).includes(name))).toEqual([]);
  });

  it("gives servers only flags of options", () => {
    const commands = text.match(/flywheel serve .*|args: \[serve.*|--[a-z-]+ torch|--shutdown-timeout/g) ?? [];
    const flags = commands.flatMap((command) => command.match(/(?<=--)[a-z-]+/g) ?? []);
    expect(flags.filter((flag) => !NAMES.map(flagName).includes(flag))).toEqual([]);
  });
});

/** Variables and flags of every kind of server, as the manifests set them. */
function settings(): [string, Record<string, string>][] {
  const [config] = readKubernetes().filter(({ kind }) => kind === "ConfigMap");
  const secret = { FLYWHEEL_DATABASE: "postgres://flywheel:secret@db:5432/flywheel", FLYWHEEL_API_KEY: "secret" };
  const { api, worker } = readCompose().services;
  const kubernetes = ["api", "worker"].map((role) => ({ ...config!.body.data, ...secret, FLYWHEEL_ROLE: role }));
  const units = ["api", "worker"].map((role) => {
    const pairs = readManifest(`systemd/flywheel-${role}.service`).match(/FLYWHEEL_\w+=\S+/g)!;
    return { ...Object.fromEntries(pairs.map((pair) => pair.split("="))), ...secret, FLYWHEEL_ROLE: role };
  });
  return [
    ["compose, api", { ...api.environment, ...secret }],
    ["compose, worker", { ...worker.environment, ...secret }],
    ["systemd, api", units[0]!],
    ["systemd, worker", units[1]!],
    ["kubernetes, api", kubernetes[0]!],
    ["kubernetes, worker", kubernetes[1]!],
  ];
}

it.each(settings())("the server takes the settings: %s", (_name, env) => {
  const config = loadConfig({ env });
  expect(config.role).toBe(env.FLYWHEEL_ROLE);
  expect(config.storage).toBe(env.FLYWHEEL_STORAGE);
  expect(config.database).toBe(env.FLYWHEEL_DATABASE);
});
