// Says what is wrong with a bucket: in one sentence for the operator, and whether it helps to try again.

import { StorageUnavailable } from "../../../errors/faults.ts";

/** The fields of errors of the SDK and of Node's sockets. */
interface Fault {
  name?: string;
  message?: string;
  code?: string;
  Region?: string;
  BucketRegion?: string;
  $metadata?: { httpStatusCode?: number };
  $response?: { headers?: Record<string, string> };
}

export interface Place {
  bucket: string;
  /** "" or ends with "/". */
  prefix: string;
}

const ACTIONS =
  "s3:ListBucket, s3:ListBucketMultipartUploads, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload";

const REFUSALS: Record<string, (place: Place, fault: Fault) => string> = {
  NoSuchBucket: ({ bucket }) => `there is no bucket ${bucket}: make it, or correct the name or the endpoint`,
  AccessDenied: ({ bucket }) => `access to the bucket ${bucket} is denied: its policy must allow ${ACTIONS}`,
  InvalidAccessKeyId: () => "the access key is unknown: check AWS_ACCESS_KEY_ID, or the role of this machine",
  SignatureDoesNotMatch: () => "the secret key is wrong: check AWS_SECRET_ACCESS_KEY",
  ExpiredToken: () => "the credentials have expired: renew them",
  CredentialsProviderError: () =>
    "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role",
  NotImplemented: ({ bucket }) =>
    `the server of the bucket ${bucket} does not offer what is needed: conditional writes, and lists of uploads`,
  RequestTimeTooSkewed: () => "the clock of this machine is wrong: set it",
  PermanentRedirect: otherRegion,
  AuthorizationHeaderMalformed: otherRegion,
  IllegalLocationConstraintException: otherRegion,
};

/** Answers that say "later". */
const LATER = new Set([408, 409, 425, 429]);

const NETWORK =
  /^(ECONN|ENOTFOUND|EAI_AGAIN|EPIPE|ETIMEDOUT|EHOST|ENET|EPROTO|UND_|ERR_STREAM_PREMATURE_CLOSE|ERR_SSL|ERR_TLS|CERT_)/;
/** Nobody whom we trust has signed the server's certificate. */
const UNKNOWN_AUTHORITY = /^(SELF_SIGNED_CERT|DEPTH_ZERO_SELF|UNABLE_TO_(GET_ISSUER|VERIFY))/;

/** The error that callers see. Errors of this machine, such as a full disk, are returned as they are. */
export function explained(error: unknown, place: Place): Error {
  const fault = error as Fault;
  if (error instanceof StorageUnavailable || fault.name === "AbortError") return error as Error;
  const status = fault.$metadata?.httpStatusCode;
  const refusal = REFUSALS[fault.name ?? ""];
  if (refusal) return new StorageUnavailable(refusal(place, fault), false, error);
  if (/region is missing/i.test(fault.message ?? "")) {
    return new StorageUnavailable("no region is set: set AWS_REGION", false, error);
  }
  if (/region not accepted/i.test(fault.message ?? "")) {
    return new StorageUnavailable("AWS_REGION is not the name of a region: correct it", false, error);
  }
  if (status !== undefined && (status >= 500 || LATER.has(status))) {
    return new StorageUnavailable(`the bucket ${place.bucket} answers ${status} ${fault.name}`, true, error);
  }
  if (status === 301 || status === 307) return new StorageUnavailable(otherRegion(place, fault), false, error);
  if (status === 403) return new StorageUnavailable(REFUSALS.AccessDenied!(place, fault), false, error);
  if (status !== undefined) {
    return new StorageUnavailable(`the bucket ${place.bucket} answers ${status}: ${fault.message}`, false, error);
  }
  const unreachable = whyUnreachable(fault);
  if (unreachable !== null) {
    return new StorageUnavailable(`the bucket ${place.bucket} cannot be reached: ${unreachable}`, true, error);
  }
  return error instanceof Error ? error : new Error(String(error));
}

/** In one line; null = something else is wrong. */
function whyUnreachable({ name, code = "", message = "" }: Fault): string | null {
  if (UNKNOWN_AUTHORITY.test(code)) {
    return `${message}: name the file with its authority's certificate in NODE_EXTRA_CA_CERTS`;
  }
  // OpenSSL's own text has several lines
  if (code === "EPROTO" && message.includes("wrong version number")) {
    return "the server speaks no TLS: is its address http://…?";
  }
  if (name !== "TimeoutError" && !NETWORK.test(code) && !/socket hang up|aborted/.test(message)) return null;
  return message.trim().split("\n")[0] || code;
}

/** Whether an answer says that there is no such object, upload or bucket. */
export function isMissing(error: unknown): boolean {
  const { name, $metadata } = error as Fault;
  return name !== "NoSuchBucket" && (name === "NoSuchKey" || name === "NotFound" || $metadata?.httpStatusCode === 404);
}

/** Whether a write was refused because the object exists. */
export function isTaken(error: unknown): boolean {
  return (error as Fault).$metadata?.httpStatusCode === 412;
}

function otherRegion({ bucket }: Place, fault: Fault): string {
  const region = fault.Region ?? fault.BucketRegion ?? fault.$response?.headers?.["x-amz-bucket-region"];
  return `the bucket ${bucket} is in another region: set AWS_REGION${region ? `=${region}` : ""}, or correct the endpoint`;
}
