// Bits per byte on held-out text, by source: the server's log-probability of a text divided by its size in bytes. This makes
// models with different tokenizers comparable.

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Endpoint, inParallel, textLogprob } from "./endpoint.ts";
import { fromRepository } from "./served-model.ts";

export type Texts = Map<string, string[]>;

const SCRIPT = fromRepository("models/flywheel-mini/recipe/heldout_text.py");

/** At most `documents` held-out texts per source from a folder of *.jsonl.zst files, each cut to `characters`. */
export function heldOutTexts(data: string, documents = 100, characters = 3000): Texts {
  if (!existsSync(SCRIPT)) throw new Error("unpack the recipe first: tar -C models/flywheel-mini -xf recipe.tar.xz");
  const folder = mkdtempSync(join(tmpdir(), "flywheel-heldout-"));
  try {
    const file = join(folder, "heldout.jsonl");
    execFileSync("python3", ["-B", SCRIPT, "--data", data, "--out", file], {
      stdio: ["ignore", "inherit", "inherit"],
    });
    const texts: Texts = new Map();
    for (const line of readFileSync(file, "utf8").trim().split("\n")) {
      const [source, text] = JSON.parse(line) as [string, string];
      const list = texts.get(source) ?? [];
      texts.set(source, list);
      if (list.length < documents) list.push(text.slice(0, characters).trim());
    }
    return texts;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Source -> bits per byte. */
export async function bitsPerByte(endpoint: Endpoint, texts: Texts): Promise<Map<string, number>> {
  const bits = new Map<string, number>();
  for (const [source, list] of texts) {
    const parts = await inParallel(list, 2, (text) => textLogprob(endpoint, text));
    const nats = parts.reduce((sum, part) => sum - part.logprob, 0);
    bits.set(source, nats / Math.LN2 / parts.reduce((sum, part) => sum + part.bytes, 0));
  }
  return bits;
}

/** One column for every model. */
export function bitsTable(texts: Texts, models: readonly { name: string; bits: Map<string, number> }[]): string {
  return [
    `| held-out text | documents | kB | ${models.map(({ name }) => name).join(" | ")} |`,
    `|---|---:|---:|${models.map(() => "---:|").join("")}`,
    ...[...texts].map(([source, list]) => {
      const bytes = list.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
      const cells = models.map(({ bits }) => bits.get(source)?.toFixed(3));
      return `| ${source} | ${list.length} | ${Math.round(bytes / 1000)} | ${cells.join(" | ")} |`;
    }),
  ].join("\n");
}
