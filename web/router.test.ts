import { beforeAll, expect, it, vi } from "vitest";

let match: typeof import("./router.ts").match;
beforeAll(async () => {
  vi.stubGlobal("location", { pathname: "/", search: "", origin: "http://x" });
  ({ match } = await import("./router.ts"));
});

it("finds placeholders, and only whole paths", () => {
  expect(match("/", "/")).toEqual({});
  expect(match("/jobs/:id", "/jobs/a%20b")).toEqual({ id: "a b" });
  expect(match("/jobs/:id/lab", "/jobs/7/lab")).toEqual({ id: "7" });
  expect(match("/jobs/:id/:group/:trajectory", "/jobs/7/2/5")).toEqual({ id: "7", group: "2", trajectory: "5" });
  for (const path of ["/jobs", "/jobs/", "/jobs/7/2", "/job/7"]) expect(match("/jobs/:id", path)).toBeNull();
});

it("takes what is no valid encoding as it is", () => {
  expect(match("/jobs/:id", "/jobs/%zz")).toEqual({ id: "%zz" });
});
