import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { OperatorError } from "../errors/faults.ts";
import { loadConfig, shownConfig } from "./load.ts";
import { sizeAndAge } from "./option.ts";

function yaml(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), "flywheel-config-")), "config.yaml");
  writeFileSync(path, text);
  return path;
}

describe("loadConfig", () => {
  it("defaults to the bundled model on loopback", () => {
    const config = loadConfig();
    expect(config).toMatchObject({
      host: "127.0.0.1",
      port: 8000,
      model: "bundled",
      schedulingPolicy: "priority",
      apiKey: [],
    });
  });

  it("prefers flag over environment over file over default", () => {
    const file = yaml("port: 1\nmax-queue: 1\nmax_num_seqs: 1\nhost: 0.0.0.0\n");
    const env = { FLYWHEEL_PORT: "2", FLYWHEEL_MAX_QUEUE: "2" };
    const config = loadConfig({ flags: { port: "3" }, env, file });
    expect(config).toMatchObject({ port: 3, maxQueue: 2, maxNumSeqs: 1, host: "0.0.0.0", maxLoras: 4 });
  });

  it("reads suffixes, lists, switches and JSON from text", () => {
    const config = loadConfig({
      env: {
        FLYWHEEL_MAX_BODY_BYTES: "32Mi",
        FLYWHEEL_SERVED_MODEL_NAME: "a, b",
        FLYWHEEL_LORA_MODULES: '{"name":"x","path":"y,z"}',
        FLYWHEEL_ENABLE_PREFIX_CACHING: "off",
        FLYWHEEL_OVERRIDE_GENERATION_CONFIG: '{"temperature":0.5}',
        VLLM_API_KEY: "secret",
      },
    });
    expect(config).toMatchObject({
      maxBodyBytes: 32 * 2 ** 20,
      servedModelName: ["a", "b"],
      loraModules: ['{"name":"x","path":"y,z"}'],
      enablePrefixCaching: false,
      overrideGenerationConfig: { temperature: 0.5 },
      apiKey: ["secret"],
    });
  });

  it("reads adapters given as objects, in a JSON list or in YAML", () => {
    const adapters = [{ name: "a", path: "x" }, "b=y"];
    const expected = ['{"name":"a","path":"x"}', "b=y"];
    expect(loadConfig({ env: { FLYWHEEL_LORA_MODULES: JSON.stringify(adapters) } }).loraModules).toEqual(expected);
    expect(loadConfig({ file: yaml("lora-modules: [{name: a, path: x}, b=y]") }).loraModules).toEqual(expected);
    expect(() => loadConfig({ file: yaml("api-key: [{a: b}]") })).toThrow(/expects a list of strings/);
  });

  it("normalizes origins to the form that browsers send", () => {
    const given = ["https://App.example/", "http://x:80", "http://localhost:3000", "chrome-extension://abc", "*"];
    const expected = ["https://app.example", "http://x", "http://localhost:3000", "chrome-extension://abc", "*"];
    expect(loadConfig({ flags: { allowedOrigins: given } }).allowedOrigins).toEqual(expected);
    for (const bad of ["app.example", "https://app.example/path", "https://"]) {
      expect(() => loadConfig({ flags: { allowedOrigins: [bad] } }), bad).toThrow(/--allowed-origins expects origins/);
    }
  });

  it("does not quote a secret in an error message", () => {
    expect(() => loadConfig({ env: { FLYWHEEL_API_KEY: "[hidden" } })).toThrow(
      /^FLYWHEEL_API_KEY starts with \[ but is not a JSON list$/,
    );
  });

  it.each([
    [{ flags: { port: "70000" } }, /--port must be at least 0 and at most 65535/],
    [{ flags: { port: "eighty" } }, /--port expects a whole number.*eighty/],
    [{ flags: { apiKey: [""] } }, /--api-key must not be empty/],
    [{ flags: { apiKey: ["two words"] } }, /--api-key must be ASCII without spaces$/],
    [{ env: { VLLM_API_KEY: "schlüssel" } }, /VLLM_API_KEY must be ASCII without spaces$/],
    [{ flags: { host: "" } }, /--host must not be empty/],
    [{ env: { FLYWHEEL_DTYPE: "float8" } }, /FLYWHEEL_DTYPE must be one of auto/],
    [{ flags: { overrideGenerationConfig: "[1]" } }, /expects a JSON object/],
    [{ flags: { enableLora: "perhaps" } }, /true or false/],
    [{ flags: { mcpServer: ["https://tools.example/mcp"] } }, /NAME=https:\/\/tools\.example\/mcp/],
    [{ flags: { mcpServer: ["a=file:///etc"] } }, /NAME=https/],
    [{ flags: { mcpServer: ["a=https://user:pass@tools.example"] } }, /NAME=https/],
    [{ flags: { mcpServer: ["a=https://x.example", "a=https://y.example"] } }, /has a name twice/],
    [{ file: "does-not-exist.yaml" }, /cannot read does-not-exist.yaml/],
    [
      { flags: { maxLoraRank: "4" } },
      /^--lora-rank 8 exceeds --max-lora-rank 4: use --lora-rank 4 or --max-lora-rank 8$/,
    ],
  ])("refuses %j", (sources, message) => {
    expect(() => loadConfig(sources)).toThrow(OperatorError);
    expect(() => loadConfig(sources)).toThrow(message);
  });

  it("accepts any adapter rank when training is off", () => {
    expect(loadConfig({ flags: { maxLoraRank: "4", training: false } }).maxLoraRank).toBe(4);
  });

  it("reads MCP servers, and shows none of their addresses", () => {
    const config = loadConfig({ flags: { mcpServer: ["sea=https://x.example/mcp?key=a=b", "lake=http://y.example"] } });
    expect(config.mcpServer).toEqual(["sea=https://x.example/mcp?key=a=b", "lake=http://y.example"]);
    expect(JSON.stringify(shownConfig(config))).not.toContain("example");
  });

  it.each([
    ["2Gi/30d", 2 ** 31, 30],
    ["500M", 5e8, 30],
    ["7d", 2 ** 31, 7],
    ["0.5d/1Ki", 1024, 0.5],
    [0, 0, 30],
  ])("reads how much to keep, and how long: %s", (keepTrajectories, bytes, days) => {
    const config = loadConfig({ file: yaml(`keep-trajectories: ${keepTrajectories}`) });
    expect(sizeAndAge(config.keepTrajectories)).toEqual({ bytes, days });
  });

  it("takes what is not given from the option's own default", () => {
    const config = loadConfig({ flags: { keepResponses: "7d", keepTrajectories: "5Mi" } });
    expect(sizeAndAge(config.keepResponses)).toEqual({ bytes: 2 ** 30, days: 7 });
    expect(sizeAndAge(config.keepTrajectories)).toEqual({ bytes: 5 * 2 ** 20, days: 30 });
  });

  it.each(["", "much", "2Gi/", "-1", "-3d", "1/2/3x", "1d/2d", "1Mi/2Mi"])("refuses to keep %j", (keepTrajectories) => {
    expect(() => loadConfig({ flags: { keepTrajectories } })).toThrow(/--keep-trajectories expects a size, an age/);
  });

  it("allows a role of its own only to servers that share a database", () => {
    const database = "postgres://localhost/flywheel";
    expect(loadConfig({ flags: { role: "worker", database } }).role).toBe("worker");
    for (const role of ["api", "worker"]) {
      const line = `--role ${role} needs a database that servers share: give --database postgres://…`;
      expect(() => loadConfig({ flags: { role } })).toThrow(line);
    }
    expect(() => loadConfig({ flags: { role: "worker", database, training: false } })).toThrow("remove --no-training");
  });

  it("refuses unknown keys, duplicate keys and files that are not a mapping", () => {
    expect(() => loadConfig({ file: yaml("max-modle-len: 5") })).toThrow(/unknown option max-modle-len/);
    expect(() => loadConfig({ file: yaml("max-model-len: 5\nmax_model_len: 6") })).toThrow(
      /max-model-len appears twice/,
    );
    expect(() => loadConfig({ file: yaml("- 1") })).toThrow(/mapping/);
    expect(loadConfig({ file: yaml("") }).port).toBe(8000);
  });

  it("shows only settings that differ from the defaults, and masks secrets", () => {
    const config = loadConfig({ flags: { apiKey: ["k"], port: "9" } });
    expect(shownConfig(config)).toEqual({ "api-key": "***", port: 9 });
  });
});
