import { expect, it } from "vitest";
import type { Principal } from "../http/auth.ts";
import { LiveRequests } from "./live-requests.ts";

const caller = (id: string, ...scopes: string[]) => ({ id, scopes: new Set(scopes) }) as unknown as Principal;

it("means by an id the caller's own requests first; only an admin's may be anybody's", () => {
  const live = new LiveRequests();
  const [admin, user, other] = [caller("root", "admin"), caller("user", "inference"), caller("other", "inference")];
  const theirs = live.enter("same", user);
  expect(live.called("same", admin)).toEqual([theirs]);
  expect(live.called("same", user)).toEqual([theirs]);
  expect(live.called("same", other)).toEqual([]);
  const own = live.enter("same", admin);
  expect(live.called("same", admin)).toEqual([own]);
  live.leave(own);
  expect(live.called("same", admin)).toEqual([theirs]);
  expect(live.called("another", admin)).toEqual([]);
});
