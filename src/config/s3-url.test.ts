import { expect, it } from "vitest";
import { loadConfig } from "./load.ts";
import { s3Place } from "./s3-url.ts";

it("reads a bucket and a prefix", () => {
  expect(s3Place("s3://models")).toEqual({ bucket: "models", prefix: "" });
  expect(s3Place("s3://models/")).toEqual({ bucket: "models", prefix: "" });
  expect(s3Place("s3://my.models-1/team/prod/")).toEqual({ bucket: "my.models-1", prefix: "team/prod/" });
  expect(s3Place("/srv/flywheel")).toBeNull();
  expect(s3Place("s3")).toBeNull();
});

it.each([
  ["s3://", /has no bucket/],
  ["s3:///prefix", /has no bucket/],
  ["s3:bucket", /must look like s3:\/\/BUCKET\/PREFIX/],
  ["s3://bucket/a?region=eu-west-1", /without \? or #.*AWS_REGION/],
  ["s3://bucket?x", /without \? or #/],
  ["s3://bucket/a#b", /without \? or #/],
  ["s3://KEY:SECRET@bucket/a", /credentials .* come from the environment/],
  ["s3://host:9000/bucket", /come from the environment/],
  ["s3://Bucket", /does not allow, Bucket/],
  ["s3://ab", /does not allow/],
  ["s3://-abc", /does not allow/],
  ["s3://a..b", /does not allow/],
  ["s3://10.0.0.1", /does not allow/],
  [`s3://${"a".repeat(64)}`, /does not allow/],
  ["s3://bucket/a//b", /prefix that is not allowed/],
  ["s3://bucket/../b", /prefix that is not allowed/],
  ["s3://bucket/a b", /prefix that is not allowed/],
])("refuses --storage %s in one line", (storage, message) => {
  expect(() => s3Place(storage)).toThrow(message);
  const error = caught(() => loadConfig({ flags: { storage }, env: {} }));
  expect(error.message).toMatch(message);
  expect(error.message).toContain("storage");
  expect(error.message).not.toContain("\n");
});

function caught(work: () => unknown): Error {
  try {
    work();
  } catch (error) {
    return error as Error;
  }
  throw new Error("nothing was thrown");
}
