// What is installed: the lock files name every package with its digest and no place to get it from, and package.json says what
// a registry shows, and nothing about where this repository is.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

interface Locked {
  version?: string;
  resolved?: string;
  integrity?: string;
  link?: boolean;
  hasInstallScript?: boolean;
}

const json = (path: string) => JSON.parse(readFileSync(new URL(`../${path}`, import.meta.url), "utf8"));

it.each(["package-lock.json", "test/clients/package-lock.json"])(
  "%s has the digest of every package, and no host",
  (path) => {
    const packages = Object.entries<Locked>(json(path).packages);
    const installed = packages.filter(([where, { link }]) => where.includes("node_modules/") && !link);
    expect(installed.length).toBeGreaterThan(50);
    const without = installed.filter(([, { integrity }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? ""));
    expect(without.map(([where]) => where)).toEqual([]);
    // the others are folders of this repository
    const ours = packages.filter(([where]) => where !== "" && !where.includes("node_modules/")).map(([where]) => where);
    expect(ours.filter((where) => !where.startsWith("packaging/"))).toEqual([]);
    const places = packages.flatMap(([, { resolved }]) => (resolved === undefined ? [] : [resolved]));
    expect(places.filter((place) => !ours.includes(place))).toEqual([]);
  },
);

it.each(["package.json", "test/clients/package.json"])(
  "%s names exact versions, or folders of this repository",
  (path) => {
    const { dependencies, devDependencies = {} } = json(path) as Record<string, Record<string, string>>;
    const versions = Object.entries({ ...dependencies, ...devDependencies });
    expect(versions.length).toBeGreaterThan(5);
    const loose = versions.filter(
      ([, version]) => !/^(npm:[\w@/-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$|^file:packaging\//.test(version),
    );
    expect(loose).toEqual([]);
  },
);

it("package.json says what a registry shows, and nothing about where the repository is", () => {
  const manifest = json("package.json");
  const { keywords, engines, files, description } = manifest;
  expect(manifest).toMatchObject({
    ...{ name: "flywheel", license: "Apache-2.0", author: expect.stringMatching(/\w/), type: "module" },
    ...{ version: expect.stringMatching(/^\d+\.\d+\.\d+$/), bin: { flywheel: "bin/flywheel" } },
  });
  expect(description.length).toBeGreaterThan(40);
  expect(keywords.length).toBeGreaterThan(5);
  expect(engines.node).toBe(">=20.19");
  expect(files).toEqual(expect.arrayContaining(["bin", "dist", "LICENSE", "README.md", "sbom.json"]));
  for (const field of ["repository", "homepage", "bugs", "publishConfig", "funding"])
    expect(manifest).not.toHaveProperty(field);
  expect(JSON.stringify(manifest)).not.toMatch(/https?:|git@|git\+/);
  // installing a release runs nothing
  expect(Object.keys(manifest.scripts).filter((name) => /^(pre|post)?install$|^prepare$/.test(name))).toEqual([]);
});
