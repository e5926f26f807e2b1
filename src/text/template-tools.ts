// Tool definitions and documents in the exact form templates print them: what a client left out of a tool appears as
// null, because the prompts models were trained on show it so.

import { isJsonObject } from "../json/json-object.ts";
import { PromptError } from "./prompt-error.ts";

export interface ChatTool {
  type: "function";
  function: { name: string; description: string | null; parameters: unknown; strict?: unknown };
}

export type ChatDocument = Readonly<Record<string, string>>;

/** null for null, absent or empty. */
export function readTools(tools: unknown, path = "tools"): ChatTool[] | null {
  if (tools == null) return null;
  if (!Array.isArray(tools)) throw new PromptError("invalid_tool", path, "Tools must be an array.");
  return tools.length === 0 ? null : tools.map((tool, index) => readTool(tool, `${path}.${index}`));
}

function readTool(tool: unknown, path: string): ChatTool {
  if (!isJsonObject(tool)) throw new PromptError("invalid_tool", path, "A tool must be an object.");
  if (tool.type != null && tool.type !== "function") {
    throw new PromptError("invalid_tool", `${path}.type`, "The type of a tool must be function.");
  }
  if (!isJsonObject(tool.function))
    throw new PromptError("invalid_tool", `${path}.function`, "A tool needs a function.");
  const { name, description, parameters, strict } = tool.function;
  if (typeof name !== "string") {
    throw new PromptError("invalid_tool", `${path}.function.name`, "The function of a tool needs a name.");
  }
  if (description != null && typeof description !== "string") {
    throw new PromptError("invalid_tool", `${path}.function.description`, "A description must be a string.");
  }
  return {
    type: "function",
    function: {
      name,
      description: description ?? null,
      parameters: parameters ?? null,
      ...(strict === undefined ? {} : { strict }),
    },
  };
}

export function readDocuments(documents: unknown): ChatDocument[] | null {
  if (documents == null) return null;
  if (!Array.isArray(documents)) throw new PromptError("invalid_document", "documents", "Documents must be an array.");
  return documents.map((document, index) => {
    const path = `documents.${index}`;
    if (!isJsonObject(document)) throw new PromptError("invalid_document", path, "A document must be an object.");
    for (const [key, value] of Object.entries(document)) {
      if (typeof value !== "string") {
        throw new PromptError("invalid_document", `${path}.${key}`, "The values of a document must be strings.");
      }
    }
    return document as ChatDocument;
  });
}
