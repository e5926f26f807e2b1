// Every path and every relative link in the Markdown pages leads somewhere, and so do the pages that sources refer to.

import { existsSync, readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, it } from "vitest";
import { files, pages, ROOT, read, TOP_FOLDERS } from "./pages.ts";

/** Not in the tree. test/mini/recipe.test.ts knows what is in the archive of the recipe. */
const ELSEWHERE = /(^|\/)(dist|node_modules)\/|^recipe\//;

const sources = files.filter((file) => file.startsWith("src/") && file.endsWith(".ts"));

/** The anchors that GitHub gives to a page's headings. */
function anchorsOf(page: string): string[] {
  const slug = (heading: string) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-");
  return [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => slug(heading!));
}

it.each(pages)("links in %s lead to a file and a heading", (page) => {
  const links = [...read(page).matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map(([, link]) => link!);
  const broken = links.filter((link) => {
    const [path, anchor] = link.split("#") as [string, string?];
    const target = path === "" ? page : relative(ROOT, join(ROOT, dirname(page), path));
    if (!existsSync(join(ROOT, target))) return true;
    return anchor !== undefined && !anchorsOf(target).includes(anchor);
  });
  expect(broken).toEqual([]);
});

it("pages of the package lead to nothing that is not in it", () => {
  const { files: shipped } = JSON.parse(read("package.json")) as { files: string[] };
  const isShipped = (path: string) => shipped.some((entry) => path === entry || path.startsWith(`${entry}/`));
  const leaving = pages.filter(isShipped).flatMap((page) => {
    const links = [...read(page).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(([, link]) => link!);
    return links.filter((link) => !isShipped(join(dirname(page), link))).map((link) => `${page}: ${link}`);
  });
  expect(leaving).toEqual([]);
});

it.each(pages)("paths in %s exist", (page) => {
  const words = [...read(page).matchAll(/`([\w@./-]+)`/g)].map(([, word]) => word!);
  const missing = words.filter((word) => {
    if (ELSEWHERE.test(word)) return false;
    if (TOP_FOLDERS.includes(word.split("/")[0]!) && word.includes("/")) return !existsSync(join(ROOT, word));
    if (/^[a-z][a-z/-]*\/$/.test(word)) return !files.some((file) => `/${file}`.includes(`/${word}`));
    return /\w\.(ts|mjs|py|sh)$/.test(word) && !files.some((file) => `/${file}`.endsWith(`/${word}`));
  });
  expect(missing).toEqual([]);
});

it("pages and tests that sources refer to exist", () => {
  const missing = sources.flatMap((source) =>
    [...read(source).matchAll(/\b(?:docs|bench|test|examples)\/[\w./-]+\.(?:md|ts|mjs|py)\b/g)]
      .filter(([path]) => !existsSync(join(ROOT, path)))
      .map(([path]) => `${source}: ${path}`),
  );
  expect(missing).toEqual([]);
});

it("ARCHITECTURE names every folder of src", () => {
  const folders = readdirSync(join(ROOT, "src"));
  expect(folders.filter((folder) => !read("ARCHITECTURE.md").includes(`\`${folder}\``))).toEqual([]);
});

it("ARCHITECTURE lists the arrows that test/architecture.test.ts checks", () => {
  const [, table] = /const allowed.*? = \{\n(.*?)\n\};/s.exec(read("test/architecture.test.ts"))!;
  const enforced = [...table!.matchAll(/^ {2}(\w+): \[(.*)\],$/gm)].map(([, folder, names]) => [
    folder!,
    [...names!.matchAll(/\w+/g)].map(String).sort(),
  ]);
  const rows = [...read("ARCHITECTURE.md").matchAll(/^\| `(\w+)` \| .* \| (.*)\|$/gm)].map(([, folder, names]) => [
    folder!,
    [...names!.matchAll(/\w+/g)].map(String).sort(),
  ]);
  const common = ["errors", "json", "system", "pacing"].map((folder) => [folder, []]);
  expect(Object.fromEntries([...rows, ...common])).toEqual(Object.fromEntries(enforced));
});

it("SECURITY has a row for every file of test/security", () => {
  const attacks = readdirSync(join(ROOT, "test/security")).filter((name) => name.endsWith(".test.ts"));
  expect(attacks.filter((name) => !read("SECURITY.md").includes(`| \`${name}\` |`))).toEqual([]);
});
