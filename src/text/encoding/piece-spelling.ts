// Reads from the decoder section of tokenizer.json how pieces spell bytes. Two kinds are supported: byte-level alphabets
// and SentencePiece-style space marks. Other kinds (WordPiece, CTC) are refused at load time, because their text cannot be
// rebuilt from single tokens.

import { isJsonObject, type JsonObject } from "../../json/json.ts";
import { TextFilesError } from "../tokenizer-files.ts";
import type { PieceSpelling } from "./vocabulary.ts";

const DEFAULT_SPACE_MARK = "\u2581";

export function readPieceSpelling(tokenizer: JsonObject): { spelling: PieceSpelling; stripsLeadingSpace: boolean } {
  const stages = stagesOf(tokenizer.decoder, "decoders");
  const has = (type: string): boolean => stages.some((stage) => stage.type === type);
  if (has("ByteLevel")) {
    return { spelling: { kind: "byte_level", spaceMark: "", byteFallback: false }, stripsLeadingSpace: false };
  }
  const metaspace = stages.find((stage) => stage.type === "Metaspace");
  const replace = stages.find((stage) => stage.type === "Replace" && stage.content === " ");
  if (!metaspace && !replace && !has("ByteFallback")) {
    const found = stages.map((stage) => stage.type).join(", ") || "none";
    throw new TextFilesError(
      `tokenizer.json has a decoder of an unsupported kind (${found}): byte-level and SentencePiece ones can be served.`,
    );
  }
  return {
    spelling: {
      kind: "sentencepiece",
      spaceMark: textOf(metaspace?.replacement) ?? patternOf(replace) ?? DEFAULT_SPACE_MARK,
      byteFallback: has("ByteFallback"),
    },
    stripsLeadingSpace: stages.some(stripsSpace),
  };
}

function stripsSpace(stage: JsonObject): boolean {
  if (stage.type === "Strip") return stage.content === " " && Number(stage.start) > 0;
  return stage.type === "Metaspace" && stage.prepend_scheme !== "never" && stage.add_prefix_space !== false;
}

function patternOf(stage: JsonObject | undefined): string | null {
  return isJsonObject(stage?.pattern) ? textOf(stage.pattern.String) : null;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function stagesOf(section: unknown, listName: string): JsonObject[] {
  if (!isJsonObject(section)) return [];
  if (section.type !== "Sequence") return [section];
  const list = section[listName];
  return Array.isArray(list) ? list.flatMap((stage) => stagesOf(stage, listName)) : [];
}
