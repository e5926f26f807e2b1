// The form of --storage s3://BUCKET/PREFIX.

export interface S3Place {
  bucket: string;
  /** "" or ends with "/". */
  prefix: string;
}

const FORM = "must look like s3://BUCKET/PREFIX";

/** The rules of S3 for names, which other servers share. */
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const ADDRESS = /^\d+\.\d+\.\d+\.\d+$/;

/** null = not such a URL, but a folder. Throws an Error that says what is allowed. */
export function s3Place(storage: string): S3Place | null {
  const found = /^s3:\/\/([^/]*)(\/.*)?$/is.exec(storage);
  if (!found) {
    if (/^s3:/i.test(storage)) throw new Error(FORM);
    return null;
  }
  const [, bucket = "", path = ""] = found;
  if (bucket === "") throw new Error(`${FORM}; it has no bucket`);
  if (/[?#]/.test(storage)) {
    throw new Error(`${FORM}, without ? or #; region and endpoint are AWS_REGION and AWS_ENDPOINT_URL_S3`);
  }
  if (/[@:]/.test(bucket)) throw new Error(`${FORM}; credentials and endpoint come from the environment`);
  if (!BUCKET.test(bucket) || bucket.includes("..") || ADDRESS.test(bucket)) {
    throw new Error(`has a bucket name that S3 does not allow, ${bucket}: 3 to 63 of a-z, 0-9, "." and "-"`);
  }
  const prefix = path.replace(/^\//, "").replace(/\/$/, "");
  if (prefix !== "" && !prefix.split("/").every((name) => /^[\w!*'().-]+$/.test(name) && !/^\.+$/.test(name))) {
    throw new Error(`has a prefix that is not allowed, ${prefix}: letters, digits and - _ . between single slashes`);
  }
  return { bucket, prefix: prefix === "" ? "" : `${prefix}/` };
}
