// The tools that the model practises with. Each has several names and parameter spellings, wordings of requests, and a result
// with the reply that uses it. Argument values always come from the request.

import { errandTools } from "./tool-bank-errands.ts";
import { homeTools } from "./tool-bank-home.ts";
import { townTools } from "./tool-bank-town.ts";
import { workTools } from "./tool-bank-work.ts";
import type { ToolKind } from "./tool-parts.ts";

export const toolKinds: readonly ToolKind[] = [...homeTools, ...errandTools, ...townTools, ...workTools];
