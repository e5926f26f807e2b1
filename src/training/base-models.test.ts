import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type BaseModel, BaseModels } from "./base-models.ts";

it("rejects weights that were replaced after the start", () => {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-base-"));
  cpSync("test/fixtures/llama", folder, { recursive: true });
  const bases = new BaseModels([{ name: "tiny", aliases: [], folder } as unknown as BaseModel]);
  const tiny = bases.get("tiny")!;
  bases.assertUnchanged(tiny);
  const weights = join(folder, "model.safetensors");
  rmSync(weights);
  cpSync("test/fixtures/llama/model.safetensors", weights);
  expect(() => bases.assertUnchanged(tiny)).toThrow(/base model tiny changed since the server started/);
});
