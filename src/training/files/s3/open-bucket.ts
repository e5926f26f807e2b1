// Opens a bucket with the AWS SDK, which is loaded only for this: most servers have no use for it. Region, endpoint and
// credentials come from where the SDK always looks: AWS_REGION, AWS_ENDPOINT_URL_S3, AWS_ACCESS_KEY_ID and so on, the files
// in ~/.aws, or the role of the machine.

import { OperatorError } from "../../../errors/faults.ts";
import { S3Bucket } from "./bucket.ts";
import type { Place } from "./bucket-errors.ts";

const PACKAGE = "@aws-sdk/client-s3";
const CONNECT_MS = 3_000;
/** Between two bytes. */
const SILENCE_MS = 15_000;
/** Of one request, with pauses that grow. */
const TRIES = 3;

type Sdk = Pick<typeof import("@aws-sdk/client-s3"), "S3">;

/** Throws OperatorError if the SDK is not installed, or its endpoint is no URL. */
export async function openBucket(
  place: Place,
  load: () => Promise<Sdk> = () => import("@aws-sdk/client-s3"),
): Promise<S3Bucket> {
  const { S3 } = await loaded(load);
  const s3 = new S3({
    // servers of our own have names for buckets only if their operator made them; nor do certificates fit names with dots
    forcePathStyle: ownEndpoint() !== undefined || place.bucket.includes("."),
    maxAttempts: TRIES,
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: SILENCE_MS },
    // SHA-256 is checked here; not every server knows the others
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
  });
  return new S3Bucket(s3, place);
}

/** From the first of these variables that is set, as in the SDK. */
function ownEndpoint(): string | undefined {
  const variable = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].find((name) => process.env[name]);
  if (variable === undefined) return undefined;
  const url = process.env[variable]!;
  if (/^https?:\/\/./.test(url) && URL.canParse(url)) return url;
  throw new OperatorError(`${variable} must look like https://s3.example:9000, not ${url}`);
}

async function loaded(load: () => Promise<Sdk>): Promise<Sdk> {
  try {
    return await load();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new OperatorError(`--storage s3://… needs the package ${PACKAGE}: npm install ${PACKAGE}`, { cause: error });
  }
}
