// Special tokens that may be part of a reply's text: reply parsers look for them, and grammars may contain them.

export const REPLY_MARKERS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<|python_tag|>"];
