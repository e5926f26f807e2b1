import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { usableCores } from "./usable-cores.ts";

type Files = Record<string, string>;

it.each<[string, number, Files]>([
  ["no control groups", 16, {}],
  ["no quota", 16, { "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n" }],
  ["a container's quota", 2, { "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "200000 100000\n" }],
  ["one and a half", 1, { "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n" }],
  ["less than one", 1, { "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n" }],
  ["more than there are", 16, { "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "6400000 100000\n" }],
  [
    "the least of a service's group and those above it",
    3,
    {
      "proc/self/cgroup": "0::/a.slice/b.service\n",
      "sys/fs/cgroup/a.slice/b.service/cpu.max": "400000 100000\n",
      "sys/fs/cgroup/a.slice/cpu.max": "300000 100000\n",
    },
  ],
  [
    "version 1, under the host's path",
    4,
    {
      "proc/self/cgroup": "5:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n0::/docker/1\n",
      "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "400000\n",
      "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    },
  ],
  [
    "version 1 without a quota",
    16,
    {
      "proc/self/cgroup": "4:cpu,cpuacct:/\n",
      "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
      "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    },
  ],
])("counts cores: %s", (_, cores, files) => {
  const root = mkdtempSync(join(tmpdir(), "cores-"));
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(join(root, dirname(file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  expect(usableCores(16, root)).toBe(cores);
});
