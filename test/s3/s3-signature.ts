// Checks AWS Signature Version 4 as S3 does: the signature covers the method, the path, the query, the named headers and
// the digest of the body, and the digest is that of the body that came.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

export interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
}

export class SignatureError extends Error {
  readonly code: string;
  /** Whether only the region is wrong. */
  readonly region: boolean;

  constructor(code: string, message: string, region = false) {
    super(message);
    this.code = code;
    this.region = region;
  }
}

const FORM =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$/;

/** These must be among the signed headers when a request has them. */
const COVERED = /^(host|x-amz-.*|if-none-match)$/;

export function checkSignature(
  request: IncomingMessage,
  url: URL,
  body: Buffer,
  { accessKeyId, secretAccessKey }: Credentials,
  region: string,
): void {
  const parsed = FORM.exec(request.headers.authorization ?? "");
  if (!parsed) throw new SignatureError("AccessDenied", "the request is not signed");
  const [, key, date, signedRegion, names, signature] = parsed as unknown as string[];
  if (key !== accessKeyId) throw new SignatureError("InvalidAccessKeyId", "the access key does not exist");
  if (signedRegion !== region) {
    throw new SignatureError("AuthorizationHeaderMalformed", `the region '${signedRegion}' is wrong`, true);
  }
  const signed = names!.split(";");
  const missing = Object.keys(request.headers).filter((name) => COVERED.test(name) && !signed.includes(name));
  if (missing.length > 0) throw new SignatureError("AccessDenied", `headers are not signed: ${missing.join()}`);
  const digest = request.headers["x-amz-content-sha256"] as string;
  if (digest !== "UNSIGNED-PAYLOAD" && digest !== sha256(body)) {
    throw new SignatureError("XAmzContentSHA256Mismatch", "the body is not the one that was signed");
  }
  const query = [...url.searchParams].map(([name, value]) => `${encoded(name)}=${encoded(value)}`).sort();
  const headers = signed.map((name) => `${name}:${String(request.headers[name]).trim().replace(/ +/g, " ")}\n`);
  const path = new URL(request.url!, "http://host").pathname;
  const canonical = [request.method, path, query.join("&"), headers.join(""), names, digest].join("\n");
  const time = request.headers["x-amz-date"] as string;
  const scope = `${date}/${region}/s3/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", time, scope, sha256(Buffer.from(canonical))].join("\n");
  const signing = [region, "s3", "aws4_request"].reduce(
    (secret: Buffer, part) => hmac(secret, part),
    hmac(`AWS4${secretAccessKey}`, date!),
  );
  if (!timingSafeEqual(hmac(signing, text), Buffer.from(signature!, "hex"))) {
    throw new SignatureError("SignatureDoesNotMatch", "the signature does not match");
  }
  const age = Date.now() - Date.parse(time.replace(/(....)(..)(..T..)(..)(..Z)/, "$1-$2-$3:$4:$5"));
  if (Math.abs(age) > 900_000) throw new SignatureError("RequestTimeTooSkewed", "the time is too far off");
}

function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
