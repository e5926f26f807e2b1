// Special tokens that may be part of a reply's text: reply parsers look for them, and grammars may contain them.

import { TOOL_MARKERS } from "./tools/tool-format.ts";

export const REPLY_MARKERS = ["<think>", "</think>", ...TOOL_MARKERS, "<|python_tag|>"];
