import { expect, it } from "vitest";
import { clientText } from "./faults.ts";

const raw = (code: string) => Object.assign(new Error("connect 10.0.0.5:5432"), { code });

it.each([
  [new Error("the group has no rewards"), "the group has no rewards"],
  [raw("unknown_step"), "connect 10.0.0.5:5432"],
  [raw("ENOENT"), "internal"],
  [raw("23505"), "internal"],
  [raw("SQLITE_BUSY"), "internal"],
  [new TypeError("Cannot read properties of undefined"), "internal"],
  ["text", "internal"],
])("tells clients texts of ours alone: %s", (error, told) => {
  expect(clientText(error, "internal")).toBe(told);
});
