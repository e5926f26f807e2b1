import { expect, it } from "vitest";
import { stateOf, type TokenRow } from "./token-row.ts";

it("says whether a token works", () => {
  const now = Date.parse("2026-11-17T12:00:00Z");
  const state = (part: Partial<TokenRow>) => stateOf({ expires_at: null, revoked_at: null, ...part } as TokenRow, now);
  expect(state({})).toEqual({ text: "valid", isUsable: true });
  expect(state({ expires_at: "2027-11-17T12:00:00Z" })).toEqual({ text: "valid until 2027-11-17", isUsable: true });
  expect(state({ expires_at: "2026-11-17T12:01:30Z" })).toEqual({ text: "valid for 2 min", isUsable: true });
  expect(state({ expires_at: "2026-11-17T11:58:00Z" })).toEqual({ text: "expired 2 min ago", isUsable: false });
  expect(state({ revoked_at: "2026-11-17T11:58:00Z" })).toEqual({ text: "revoked 2 min ago", isUsable: false });
});
