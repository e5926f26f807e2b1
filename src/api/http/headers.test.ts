import { expect, it } from "vitest";
import { hostCheck } from "./headers.ts";

const loopback = { host: "127.0.0.1", uds: null };
const accepted = (check: (host: string | undefined) => boolean, hosts: readonly (string | undefined)[]) =>
  hosts.filter((host) => check(host));

it("on loopback takes addresses and localhost, by the whole name", () => {
  const ours = ["127.0.0.1", "127.0.0.1:8000", "10.1.2.3:80", "[::1]:8000", "[::ffff:127.0.0.1]"];
  const names = ["localhost", "LOCALHOST:8000", "localhost.", "a.localhost:1", "a.b.localhost"];
  const foreign = [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil-localhost",
    "[evil]",
    "[]",
  ];
  const broken = [
    undefined,
    "",
    ":8000",
    " ",
    "localhost:",
    "localhost:x",
    "a@localhost",
    "localhost/x",
    "::1",
    "[127.0.0.1]",
  ];
  const check = hostCheck({ ...loopback, allowedHosts: [] });
  expect(accepted(check, [...ours, ...names, ...foreign, ...broken])).toEqual([...ours, ...names]);
});

it("takes the names that the operator gives, and those below *.NAME", () => {
  const check = hostCheck({ ...loopback, allowedHosts: ["api.example", "*.team.example"] });
  const ours = ["api.example", "API.example:8000", "a.team.example", "a.b.team.example", "localhost", "127.0.0.1"];
  const foreign = ["xapi.example", "a.api.example", "team.example", "xteam.example", "api.example.evil", undefined];
  expect(accepted(check, [...ours, ...foreign])).toEqual(ours);
});

it("takes every name on other addresses, unless the operator named some", () => {
  for (const place of [
    { host: "0.0.0.0", uds: null },
    { host: "::", uds: null },
    { host: "127.0.0.1", uds: "/run/x" },
  ]) {
    expect(hostCheck({ ...place, allowedHosts: [] })("flywheel-api:8000")).toBe(true);
    expect(hostCheck({ ...place, allowedHosts: ["flywheel-api"] })("evil.example")).toBe(false);
    expect(hostCheck({ ...place, allowedHosts: ["flywheel-api"] })("flywheel-api:8000")).toBe(true);
    expect(hostCheck({ ...place, allowedHosts: ["flywheel-api"] })("")).toBe(false);
  }
  expect(hostCheck({ ...loopback, allowedHosts: ["*"] })("anything.example")).toBe(true);
});
