// Reads a call that is there as a whole, with its keys in any order and its arguments as an object or as JSON text.

import { parseExactJson, writeExactJson } from "../../json/exact-json.ts";
import { isJsonObject } from "../../json/json.ts";

type Call = { name?: unknown; arguments?: unknown; parameters?: unknown };

/** null: the text is not a call. */
export function wholeCall(block: string): { name: string; argumentsText: string; hasArguments: boolean } | null {
  const argumentsOf = (call: Call): unknown => call.arguments ?? call.parameters ?? {};
  try {
    const call = JSON.parse(block) as Call;
    const given = argumentsOf(call);
    const value: unknown = typeof given === "string" ? JSON.parse(given) : given;
    if (typeof call.name !== "string" || call.name === "" || !isJsonObject(value)) return null;
    // Numbers as the model wrote them.
    const argumentsText =
      typeof given === "string" ? given : writeExactJson(argumentsOf(parseExactJson(block) as Call));
    return { name: call.name, argumentsText, hasArguments: "arguments" in call || "parameters" in call };
  } catch {
    return null; // no JSON
  }
}
