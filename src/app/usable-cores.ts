// How many cores this process may use: those it may run on, or fewer if its control group (a container, a service) has
// a CPU quota. More threads than that would spend the quota waiting for each other. Node 20 does not look at quotas.

import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path/posix";

/** `root`: the folder that holds proc and sys. */
export function usableCores(cores = availableParallelism(), root = "/"): number {
  return Math.max(1, Math.min(cores, Math.floor(quotaInCores(root))));
}

function quotaInCores(root: string): number {
  const read = (...path: string[]): string => {
    try {
      return readFileSync(join(root, ...path), "utf8").trim();
    } catch {
      return ""; // not Linux, or not readable: no quota is known
    }
  };
  let least = Number.POSITIVE_INFINITY;
  // "0::/path", or with controllers of version 1 "4:cpu,cpuacct:/path".
  for (const line of read("proc/self/cgroup").split("\n")) {
    const [id, controllers, path] = line.split(":", 3);
    const isOne = controllers?.split(",").includes("cpu") ?? false;
    if (path === undefined || !(isOne || id === "0")) continue;
    const mount = isOne ? `sys/fs/cgroup/${controllers}` : "sys/fs/cgroup";
    // Parent groups limit too. Inside a container the path may be the host's; then only the root exists.
    for (let group = join("/", path); ; group = join(group, "..")) {
      const [quota, period] = isOne
        ? [read(mount, group, "cpu.cfs_quota_us"), read(mount, group, "cpu.cfs_period_us")]
        : read(mount, group, "cpu.max").split(" ");
      // No limit: "max", or -1.
      if (Number(quota) > 0 && Number(period) > 0) least = Math.min(least, Number(quota) / Number(period));
      if (group === "/") break;
    }
  }
  return least;
}
