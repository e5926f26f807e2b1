import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { newAuthority } from "../../../../test/postgres/certificates.ts";
import { useS3 } from "../../../../test/s3/use-s3.ts";
import { OperatorError, StorageUnavailable } from "../../../errors/faults.ts";
import { openSqlite } from "../../../store/sqlite.ts";
import { claimStorage } from "../claim-storage.ts";
import type { LocalFile, S3Bucket } from "./bucket.ts";
import { BucketMarker } from "./bucket-marker.ts";
import { openBucket } from "./open-bucket.ts";

const s3 = useS3();
const open = (bucket = s3().bucket): Promise<S3Bucket> => openBucket({ bucket, prefix: "team/" });
const folder = mkdtempSync(join(tmpdir(), "bucket-"));
const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

/** A file with random content. */
function file(bytes: number): LocalFile & { content: Buffer } {
  const content = randomBytes(bytes);
  const path = join(folder, sha256(content).slice(0, 16));
  writeFileSync(path, content);
  return { path, bytes, sha256: sha256(content), content };
}
const LARGE = 33 * 2 ** 20;
const all = async <T>(items: AsyncIterable<T>) => {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
};
const refusal = async (work: Promise<unknown>): Promise<StorageUnavailable> => {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(StorageUnavailable);
  return error as StorageUnavailable;
};

it("writes once, reads, lists page by page and removes", async () => {
  const bucket = await open();
  const files = Array.from({ length: 8 }, () => file(1000));
  for (const [i, one] of files.entries()) await bucket.put(`x/${i} ü&.bin`, one, { isNew: true });
  await bucket.put("x/0 ü&.bin", file(1000), { isNew: true });
  const target = join(folder, "target");
  for (const [i, { bytes, sha256, content }] of files.entries()) {
    expect(await bucket.download(`x/${i} ü&.bin`, target)).toEqual({ bytes, sha256, expected: sha256 });
    expect(readFileSync(target).equals(content)).toBe(true);
  }
  expect((await all(bucket.list("x/"))).map(({ key }) => key)).toEqual(files.map((_, i) => `x/${i} ü&.bin`));
  expect(s3().keys()[0]).toBe("team/x/0 ü&.bin");
  await bucket.remove("x/0 ü&.bin");
  await bucket.remove("x/0 ü&.bin");
  expect(await bucket.download("x/0 ü&.bin", target)).toBeNull();
  expect(await bucket.get("x/0 ü&.bin")).toBeNull();
  expect(await all(bucket.list("y/"))).toEqual([]);
});

it("writes a large file in parts, once", async () => {
  const bucket = await open();
  const one = file(LARGE);
  await bucket.put("large", one, { isNew: true });
  expect(s3().objects.get("team/large")!.body.equals(one.content)).toBe(true);
  expect(s3().requests.filter(({ query }) => query.has("partNumber"))).toHaveLength(3);
  // somebody else was quicker with another content
  await expect(bucket.put("large", file(LARGE), { isNew: true })).rejects.toThrow("refuses");
  expect(s3().objects.get("team/large")!.body.equals(one.content)).toBe(true);
  expect(s3().uploads.size).toBe(0);
});

it("gives up the parts of an upload that fails", async () => {
  const bucket = await open();
  s3().fail({ kind: "access denied", match: /partNumber=2/ });
  await refusal(bucket.put("large", file(LARGE), { isNew: true }));
  expect([s3().uploads.size, s3().objects.size]).toEqual([0, 0]);
  const stop = new AbortController();
  s3().release();
  s3().fail({ kind: "hold", match: /partNumber=3/ });
  const putting = bucket.put("large", file(LARGE), { isNew: true, signal: stop.signal });
  await expect.poll(() => s3().held).toBe(1);
  stop.abort();
  await expect(putting).rejects.toThrow(/abort/i);
  expect([s3().uploads.size, s3().objects.size]).toEqual([0, 0]);
});

it.each(["small", "large"])("a write of a %s file whose answer was lost counts as done", async (size) => {
  const bucket = await open();
  const one = file(size === "small" ? 10 : LARGE);
  const match = size === "small" ? /file/ : /uploadId=[^&]*$/;
  s3().fail({ kind: "lost answer", method: size === "small" ? "PUT" : "POST", match, times: 1 });
  await bucket.put("file", one, { isNew: true });
  expect(s3().objects.get("team/file")!.body.equals(one.content)).toBe(true);
  expect(s3().uploads.size).toBe(0);
});

it("repeats requests that the server puts off or cuts off", async () => {
  const bucket = await open();
  s3().fail({ kind: "slow down", times: 2 });
  const one = file(100_000);
  await bucket.put("file", one, { isNew: true });
  s3().fail({ kind: "cut body", method: "GET", match: /file/, times: 2 });
  s3().fail({ kind: "hang up", method: "GET", match: /file/, times: 1 });
  expect(await bucket.download("file", join(folder, "cut"))).toMatchObject({ sha256: one.sha256 });
});

it("says that a server is unreachable, after it tried again", async () => {
  const bucket = await open();
  s3().fail({ kind: "slow down" });
  const slow = await refusal(bucket.remove("x"));
  expect(slow).toMatchObject({ passing: true, reason: expect.stringContaining("answers 503 SlowDown") });
  expect(s3().requests.length).toBeGreaterThan(2);
  const { url } = s3();
  await s3().close();
  const gone = await refusal(bucket.remove("x"));
  expect(gone).toMatchObject({
    passing: true,
    reason: expect.stringContaining("cannot be reached: connect ECONNREFUSED"),
  });
  expect(gone.message).not.toContain(url);
});

it("signs what it sends: wrong credentials are refused, and it says which", async () => {
  for (const [name, value, reason] of [
    ["AWS_SECRET_ACCESS_KEY", "wrong", "the secret key is wrong: check AWS_SECRET_ACCESS_KEY"],
    ["AWS_ACCESS_KEY_ID", "UNKNOWN", "the access key is unknown"],
    ["AWS_REGION", "us-east-1", "is in another region: set AWS_REGION=eu-test-1"],
  ] as const) {
    process.env[name] = value;
    const error = await refusal((await open()).putBytes("x", new Uint8Array(3), { isNew: true }));
    expect(error).toMatchObject({ passing: false, reason: expect.stringContaining(reason) });
    Object.assign(process.env, s3().env);
  }
  expect(s3().objects.size).toBe(0);
  await (await open()).putBytes("x", new Uint8Array(3), { isNew: true });
  expect(s3().objects.size).toBe(1);
});

it("says in one line at a start why a bucket cannot be used", async () => {
  const line = async (bucket?: string) => {
    const store = openSqlite(":memory:");
    const error = await claimStorage(new BucketMarker(await open(bucket)), store).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    await store.close();
    expect(error).toBeInstanceOf(OperatorError);
    expect((error as Error).message).not.toContain("\n");
    return (error as Error).message;
  };
  expect(await line("another-bucket")).toBe(
    "cannot use --storage s3://another-bucket/team: there is no bucket another-bucket: make it, or correct the name or the endpoint",
  );
  s3().fail({ kind: "access denied" });
  expect(await line()).toMatch(/access to the bucket test-bucket is denied: its policy must allow s3:ListBucket/);
  s3().release();
  s3().isConditional = false;
  expect(await line()).toMatch(/its server ignores If-None-Match on writes/);
  expect(s3().objects.size).toBe(0);
  delete process.env.AWS_REGION;
  process.env.AWS_CONFIG_FILE = join(folder, "none");
  expect(await line()).toMatch(/no region is set: set AWS_REGION/);
  for (const region of ["", "eu central"]) {
    process.env.AWS_REGION = region;
    expect(await line()).toMatch(/AWS_REGION is not the name of a region: correct it$/);
  }
  Object.assign(process.env, s3().env);
  process.env.AWS_ENDPOINT_URL_S3 = s3().url.replace("http:", "https:");
  expect(await line()).toMatch(/cannot be reached: the server speaks no TLS: is its address http:\/\/…\?$/);
  Object.assign(process.env, s3().env);
  delete process.env.AWS_ACCESS_KEY_ID;
  process.env.AWS_SHARED_CREDENTIALS_FILE = join(folder, "none");
  process.env.AWS_EC2_METADATA_DISABLED = "true";
  expect(await line()).toMatch(/no credentials were found: set AWS_ACCESS_KEY_ID/);
});

it("refuses an endpoint that is no URL", async () => {
  for (const endpoint of ["localhost:9000", "127.0.0.1:9000", "storage"]) {
    process.env.AWS_ENDPOINT_URL_S3 = endpoint;
    await expect(open()).rejects.toThrow("AWS_ENDPOINT_URL_S3 must look like https://s3.example:9000");
  }
});

it("says how to trust the certificate of a server", async () => {
  const { certificate, key } = newAuthority("Storage").issue({ ip: "127.0.0.1" });
  const server = createServer({ cert: certificate, key }).listen(0, "127.0.0.1");
  await once(server, "listening");
  process.env.AWS_ENDPOINT_URL_S3 = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { reason } = await refusal((await open()).get("x"));
  await new Promise((resolve) => server.close(resolve));
  expect(reason).toMatch(/: name the file with its authority's certificate in NODE_EXTRA_CA_CERTS$/);
});

it("knows the bucket of a database again, and refuses another one", async () => {
  const [one, other] = [openSqlite(":memory:"), openSqlite(":memory:")];
  const marker = async () => new BucketMarker(await open());
  await Promise.all([claimStorage(await marker(), one), claimStorage(await marker(), one)]);
  await claimStorage(await marker(), one);
  expect(s3().keys()).toEqual(["team/flywheel-storage.json"]);
  await expect(claimStorage(await marker(), other)).rejects.toThrow(/belongs to another database/);
  s3().objects.clear();
  await expect(claimStorage(await marker(), one)).rejects.toThrow(/is not the bucket with the files of this database/);
  await Promise.all([one.close(), other.close()]);
});

it("says which package is missing", async () => {
  const missing = () => import("@aws-sdk/client-s3-that-nobody-installed" as "@aws-sdk/client-s3");
  const opening = openBucket({ bucket: "b", prefix: "" }, async () => {
    try {
      return await missing();
    } catch (error) {
      // vitest resolves imports itself
      throw Object.assign(error as Error, { code: "ERR_MODULE_NOT_FOUND" });
    }
  });
  await expect(opening).rejects.toThrow(
    "--storage s3://… needs the package @aws-sdk/client-s3: npm install @aws-sdk/client-s3",
  );
});
