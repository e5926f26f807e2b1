// Strings of Python in three quotes, in which models write code and longer texts.
import { expect, test } from "vitest";
import { totalReply } from "../../../test/support/total-reply.ts";

test.each([
  [`[run(code="""print("a")\nprint('b')""")]`, `{"code": "print(\\"a\\")\\nprint('b')"}`],
  [`[run(code='''it''s' ''', note='', last="")]`, `{"code": "it''s' ", "note": "", "last": ""}`],
  [`[run(code="""""", more=[""], rest={'': ''})]`, `{"code": "", "more": [""], "rest": {"": ""}}`],
  [String.raw`[run(code="""\"""x\n""")]`, String.raw`{"code": "\"\"\"x\n"}`],
  [`[run(code="""a""`, `{"code": "a`],
  [`[run(code="`, `{"code": "`],
  [`[run(code=""`, `{"code": "`],
])("%s", (text, written) => {
  const whole = totalReply("pythonic", [text]);
  expect(whole).toEqual({ content: "", calls: [{ name: "run", arguments: written, id: undefined }] });
  expect(totalReply("pythonic", [...text])).toEqual(whole);
});
