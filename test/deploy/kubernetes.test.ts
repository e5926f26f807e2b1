// The Kubernetes manifests have the types of the API, and their parts fit together. The compiler checks them as literals,
// because it refuses fields that do not exist, as `kubectl apply --validate=strict` does.

import { execFileSync } from "node:child_process";
import { mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type KubernetesObject, type Loose, readKubernetes } from "./manifests.ts";

const MODULES = fileURLToPath(new URL("../../node_modules", import.meta.url));
const objects = readKubernetes();
const workloads = objects.filter(({ kind }) => kind === "Deployment" || kind === "StatefulSet");
const servers = workloads.filter(({ kind }) => kind === "Deployment");

const named = (kind: string) => objects.filter((object) => object.kind === kind);
const podOf = ({ body }: KubernetesObject): Loose => body.spec.template.spec;
const label = ({ kind, body }: KubernetesObject) => `${kind} ${body.metadata.name}`;
const each = (list: KubernetesObject[]) => list.map((object) => [label(object), object] as const);

/** What the compiler says about objects, each as a literal of its type. */
function problemsOf(list: KubernetesObject[]): string {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-kubernetes-"));
  symlinkSync(MODULES, join(folder, "node_modules"));
  list.forEach(({ apiVersion, kind, body }, index) => {
    // "policy/v1" and "networking.k8s.io/v1" are in policy/v1 and networking/v1, "v1" is in core/v1.
    const module = apiVersion.includes("/") ? apiVersion.replace(/\..*\//, "/") : `core/${apiVersion}`;
    const text = `import type { ${kind} } from "kubernetes-types/${module}";\nexport const object: ${kind} = `;
    writeFileSync(join(folder, `${index}.ts`), `${text}${JSON.stringify(body, null, 1)};\n`);
  });
  const options = { strict: true, noEmit: true, module: "nodenext", types: [] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, include: ["*.ts"] }));
  try {
    execFileSync(process.execPath, [join(MODULES, "typescript/bin/tsc"), "-p", folder], {
      encoding: "utf8",
      cwd: folder,
    });
    return "";
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

it("have the types of the API", () => {
  expect(problemsOf(objects)).toBe("");
});

it.each<[string, (container: Loose) => void, string]>([
  [
    "does not exist",
    (container) => Object.assign(container, { readinessProbes: {} }),
    "'\"readinessProbes\"' does not exist",
  ],
  ["is missing", (container) => delete container.name, "Property 'name' is missing"],
  [
    "has the wrong type",
    ({ ports }) => Object.assign(ports[0], { containerPort: "8000" }),
    "not assignable to type 'number'",
  ],
])("would not, with a field that %s", (_case, spoil, problem) => {
  const broken = structuredClone(servers[0]!);
  spoil(podOf(broken).containers[0]);
  expect(problemsOf([broken])).toContain(problem);
});

it("have names and ports that Kubernetes takes", () => {
  const names = objects.map(({ body }) => body.metadata.name as string);
  expect(names.filter((name) => !/^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name))).toEqual([]);
  expect(new Set(objects.map(label)).size).toBe(objects.length);
  const ports = workloads.flatMap((workload) => podOf(workload).containers.flatMap((one: Loose) => one.ports));
  expect(ports.filter(({ name }) => !/^[a-z-]{1,15}$/.test(name))).toEqual([]);
});

it("run two servers of each role, with a budget for disruptions", () => {
  const roles = servers.map((server) => [podOf(server).containers[0].args, server.body.spec.replicas]);
  expect(roles).toEqual([
    [["serve", "--role", "api"], 2],
    [["serve", "--role", "worker"], 2],
  ]);
  const budgets = named("PodDisruptionBudget").map(({ body }) => body.spec.selector.matchLabels);
  expect(budgets).toEqual(servers.map(({ body }) => body.spec.selector.matchLabels));
});

it("select pods that exist", () => {
  const pods = workloads.map(({ body }) => body.spec.template.metadata.labels);
  const selectors = [
    ...named("Service").map(({ body }) => body.spec.selector),
    ...named("NetworkPolicy").map(({ body }) => body.spec.podSelector.matchLabels),
    ...workloads.map(({ body }) => body.spec.selector.matchLabels),
  ];
  expect(selectors.length).toBeGreaterThan(5);
  for (const selector of selectors) expect(pods).toContainEqual(selector);
});

it("share a folder that all nodes can write", () => {
  const claims = named("PersistentVolumeClaim");
  expect(claims.map(({ body }) => [body.metadata.name, body.spec.accessModes])).toEqual([
    ["flywheel-storage", ["ReadWriteMany"]],
  ]);
});

describe.each(each(workloads))("%s", (_label, workload) => {
  const pod = podOf(workload);
  const [container] = pod.containers;

  it("does not run as root and cannot gain rights", () => {
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
    expect(container.securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
    });
    expect(pod.automountServiceAccountToken).toBe(false);
  });

  it("gets no variables for services, which could look like options", () => {
    expect(pod.enableServiceLinks).toBe(false);
  });

  it("mounts volumes that it has, and refers to settings that exist", () => {
    const claimed = (workload.body.spec.volumeClaimTemplates ?? []).map(({ metadata }: Loose) => metadata.name);
    const volumes = [...(pod.volumes ?? []).map(({ name }: Loose) => name), ...claimed].sort();
    expect(container.volumeMounts.map(({ name }: Loose) => name).sort()).toEqual(volumes);
    for (const { persistentVolumeClaim } of pod.volumes ?? []) {
      if (persistentVolumeClaim) expect(persistentVolumeClaim.claimName).toBe("flywheel-storage");
    }
    for (const { configMapRef } of container.envFrom ?? []) expect(configMapRef.name).toBe("flywheel");
    for (const { value, valueFrom } of container.env) {
      if (value !== undefined) continue;
      expect(valueFrom.secretKeyRef.name).toBe("flywheel");
      expect(["database", "api-key", "postgres-password"]).toContain(valueFrom.secretKeyRef.key);
    }
  });

  it("has an image with a version and a limit for its memory", () => {
    expect(container.image).toMatch(/:\d[\w.-]*$/);
    expect(container.resources.limits.memory).toMatch(/^\d+Gi$/);
  });
});

describe.each(each(servers))("%s", (_label, server) => {
  const pod = podOf(server);
  const [container] = pod.containers;

  it("is probed on /health at a port that it has", () => {
    for (const probe of ["startupProbe", "readinessProbe", "livenessProbe"]) {
      expect(container[probe].httpGet).toEqual({ path: "/health", port: container.ports[0].name });
    }
  });

  it("has more time to stop than running replies get", () => {
    const [settings] = named("ConfigMap");
    const wait = Number(container.lifecycle.preStop.exec.command[1]);
    const drain = Number(settings!.body.data.FLYWHEEL_SHUTDOWN_TIMEOUT);
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(wait + drain);
  });
});
