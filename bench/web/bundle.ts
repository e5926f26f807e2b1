// What the page weighs, and what making it costs.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { ROOT } from "./flywheel-process.ts";

/** Bytes of all that a browser may load, gzipped. */
export function bundleBytes(): number {
  const folder = join(ROOT, "dist/web");
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const sizes = names
    .filter((name) => /\.(html|js|css|svg)$/.test(name))
    .map((name) => gzipSync(readFileSync(join(folder, name)), { level: 9 }).length);
  return sizes.reduce((sum, size) => sum + size, 0);
}

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
