import { expect, it } from "vitest";
import { stateOf, type TokenRow } from "./token-row.ts";

it("says whether a token works", () => {
  const now = Date.parse("2026-11-17T12:00:00Z");
  const state = (part: Partial<TokenRow>) => stateOf({ expires_at: null, revoked_at: null, ...part } as TokenRow, now);
  expect(state({})).toEqual({ text: "valid", isUsable: true });
  // in the time of whoever reads it
  const [later, soon] = [new Date("2027-11-17T12:00:00Z"), new Date("2026-11-17T12:01:30Z")];
  const clock = (date: Date) =>
    `${String(date.getHours()).padStart(2, "0")}:${String(date.getMinutes()).padStart(2, "0")}`;
  expect(state({ expires_at: later.toISOString() })).toEqual({
    text: `valid until ${later.getDate()} Nov 2027, ${clock(later)}`,
    isUsable: true,
  });
  expect(state({ expires_at: soon.toISOString() })).toEqual({
    text: `valid until ${soon.getDate()} Nov 2026, ${clock(soon)} (2 min)`,
    isUsable: true,
  });
  expect(state({ expires_at: "2026-11-17T11:58:00Z" })).toEqual({ text: "expired 2 min ago", isUsable: false });
  expect(state({ revoked_at: "2026-11-17T11:58:00Z" })).toEqual({ text: "revoked 2 min ago", isUsable: false });
});
