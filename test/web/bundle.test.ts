// What can be said about the built page without a browser.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { MOST_BYTES_AT_FIRST, MOST_BYTES_LATER, pageBytes } from "./page-bytes.ts";

const folder = fileURLToPath(new URL("../../dist/web", import.meta.url));
const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
  /\.(html|js|css|svg)$/.test(name),
);
const read = (name: string) => readFileSync(join(folder, name), "utf8");
const scripts = files.filter((name) => name.endsWith(".js")).map(read);

it("is at most 110 kB at first, gzipped, and what is loaded later at most 400 kB", () => {
  const { first, later, laterParts } = pageBytes(folder);
  expect(first).toBeGreaterThan(20_000); // it has found the scripts
  expect(first).toBeLessThanOrEqual(MOST_BYTES_AT_FIRST);
  expect(laterParts.length).toBeGreaterThan(0);
  expect(later).toBeLessThanOrEqual(MOST_BYTES_LATER);
  // what few answers need waits for one that does
  for (const part of ["highlight", "mathml"]) {
    expect(laterParts.filter((name) => name.startsWith(`assets/${part}-`)).length).toBe(1);
  }
});

it("names no address but the namespaces of the document, and one that is only told", () => {
  const addresses = files.flatMap((name) => [...read(name).matchAll(/https?:\/\/[\w.-]+[^"'`\s)]*/g)].map(String));
  const known = /^http:\/\/www\.w3\.org\/(1998\/Math\/MathML|1999\/xhtml|2000\/svg|1999\/xlink)/;
  // marked says it in an error that the lexer does not throw
  const told = "https://github.com/markedjs/marked.";
  expect(addresses.filter((address) => address !== told && !known.test(address))).toEqual([]);
});

it("runs no text and makes no HTML from text", () => {
  for (const script of scripts) {
    expect(script).not.toMatch(
      /\beval\(|new Function\b|document\.write|insertAdjacentHTML|outerHTML|createContextualFragment/,
    );
    // Preact sets it from the property that the linter forbids us.
    const uses = [...script.matchAll(/.{80}\.innerHTML.{80}/gs)].map(([text]) => text);
    expect(uses.filter((use) => !use.includes("__html"))).toEqual([]);
  }
});

it("has nothing inline, and a compressed form of every file", () => {
  expect(read("index.html")).not.toMatch(/<style|<script(?![^>]* src=)|style=|\son\w+=/);
  for (const name of [...files, "licenses.txt"]) {
    expect([name, existsSync(join(folder, `${name}.br`)), existsSync(join(folder, `${name}.gz`))]).toEqual([
      name,
      true,
      true,
    ]);
  }
});

it("carries the licences of what is bundled", () => {
  const text = read("licenses.txt");
  for (const name of ["preact", "@preact/signals", "uplot", "marked", "temml", "@speed-highlight/core"]) {
    expect(text).toMatch(new RegExp(`^${name} \\d`, "m"));
  }
  expect(text).toContain("Permission is hereby granted");
});
