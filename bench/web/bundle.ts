// What making the page costs.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { ROOT } from "./flywheel-process.ts";

/** Processor seconds of `vite build web`, compression included. */
export function buildSeconds(): number {
  const tell = "process.on('exit',()=>console.error('cpu '+JSON.stringify(process.cpuUsage())))";
  const args = [
    "--import",
    `data:text/javascript,${tell}`,
    join(ROOT, "node_modules/vite/bin/vite.js"),
    "build",
    "web",
  ];
  const { stderr, status } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: "utf8" });
  const told = /^cpu (.*)$/m.exec(stderr);
  if (status !== 0 || told === null) throw new Error(`the page cannot be built:\n${stderr}`);
  const { user, system } = JSON.parse(told[1]!) as NodeJS.CpuUsage;
  return (user + system) / 1e6;
}
