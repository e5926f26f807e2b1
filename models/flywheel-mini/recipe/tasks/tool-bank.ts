// The tools the model practises with: each with several names and parameter spellings, wordings of requests, and a
// result with the reply that uses it. Argument values come from the request, never from thin air.

import { errandTools } from "./tool-bank-errands.ts";
import { homeTools } from "./tool-bank-home.ts";
import { townTools } from "./tool-bank-town.ts";
import { workTools } from "./tool-bank-work.ts";
import type { ToolKind } from "./tool-parts.ts";

export const toolKinds: readonly ToolKind[] = [...homeTools, ...errandTools, ...townTools, ...workTools];
