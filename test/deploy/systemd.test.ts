// systemd itself checks the units where it is installed. The rest of what they need is checked everywhere.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { need, needing } from "../support/needs.ts";
import { manifestsIn, readManifest } from "./manifests.ts";

const UNITS = manifestsIn("systemd").filter((file) => file.endsWith(".service"));
const hasSystemd = spawnSync("systemd-analyze", ["--version"]).status === 0;

/** Sections of a unit; a key may come several times. */
function readUnit(text: string): Record<string, Record<string, string[]>> {
  const unit: Record<string, Record<string, string[]>> = {};
  let section: Record<string, string[]> = {};
  for (const line of text.split("\n").filter((line) => line !== "" && !line.startsWith("#"))) {
    const header = /^\[(\w+)\]$/.exec(line)?.[1];
    if (header !== undefined) {
      section = {};
      unit[header] = section;
      continue;
    }
    const [, key, value] = /^([A-Za-z]+)=(.*)$/.exec(line)!;
    section[key!] ??= [];
    section[key!]!.push(value!);
  }
  return unit;
}

/** What systemd says about a unit, with a program in it that exists here. */
function verify(file: string, text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), "flywheel-units-")), basename(file));
  writeFileSync(path, text.replace("ExecStart=/opt/flywheel/bin/flywheel", `ExecStart=${process.execPath}`));
  const { stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", path], { encoding: "utf8" });
  return stderr
    .split("\n")
    .filter((line) => line.includes(basename(file)))
    .join("\n");
}

it("there is one for each role", () => {
  expect(UNITS.sort()).toEqual(["systemd/flywheel-api.service", "systemd/flywheel-worker.service"]);
});

describe.each(UNITS)("%s", (file) => {
  const { Unit, Service, Install } = readUnit(readManifest(file));
  const environment = Service!.Environment!.join(" ");

  needing(need("systemd-analyze", hasSystemd)).it("is accepted by systemd, which notices a wrong key", () => {
    expect(verify(file, readManifest(file))).toBe("");
    expect(verify(file, readManifest(file).replace("RestartSec=", "RestartSecs="))).toContain("RestartSecs");
  });

  it("starts its role as a user of its own and comes back after a failure", () => {
    const role = /flywheel-(\w+)\.service/.exec(file)![1];
    expect(Service!.ExecStart![0]).toContain(`serve --role ${role} `);
    expect([Service!.User, Service!.Restart, Install!.WantedBy]).toEqual([
      ["flywheel"],
      ["on-failure"],
      ["multi-user.target"],
    ]);
    expect(environment).toContain(`FLYWHEEL_DATA=/var/lib/${Service!.StateDirectory![0]}`);
  });

  it("needs the shared folder and may write nowhere else", () => {
    const [folder] = /(?<=FLYWHEEL_STORAGE=)\S+/.exec(environment)!;
    for (const needs of [Unit!.RequiresMountsFor, Unit!.ConditionPathIsMountPoint, Service!.ReadWritePaths]) {
      expect(needs).toEqual([folder]);
    }
    expect(Service!.ProtectSystem).toEqual(["strict"]);
    expect(Service!.NoNewPrivileges).toEqual(["yes"]);
  });

  it("has more time to stop than running replies get, and gets the signal first", () => {
    const drain = Number(/FLYWHEEL_SHUTDOWN_TIMEOUT=(\d+)/.exec(environment)![1]);
    expect(Number(Service!.TimeoutStopSec![0])).toBeGreaterThan(drain);
    expect(Service!.KillMode).toEqual(["mixed"]);
  });

  it("does not forbid memory that is written and then run, which a compiler needs", () => {
    expect(Service!.MemoryDenyWriteExecute).toBeUndefined();
  });
});

needing(need("systemd-sysusers", spawnSync("systemd-sysusers", ["--version"]).status === 0)).it(
  "systemd takes the user",
  () => {
    const file = new URL("../../deploy/systemd/flywheel.sysusers", import.meta.url).pathname;
    expect(() => execFileSync("systemd-sysusers", ["--dry-run", file], { stdio: "pipe" })).not.toThrow();
  },
);
