// TLS to PostgreSQL. A URL means what it means for psql and pg_dump (libpq): the driver's own reading of sslmode differs and
// will change. Files are read once, so that a store does not depend on them later.
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import type pg from "pg";
import { OperatorError } from "../../errors/faults.ts";

const MODES = ["disable", "require", "verify-ca", "verify-full"];
const PARAMS = ["ssl", "sslmode", "sslrootcert", "sslcert", "sslkey", "sslnegotiation"];

type Target = Pick<pg.ClientConfig, "connectionString" | "ssl" | "sslnegotiation">;

/** Throws OperatorError. A URL without `sslmode` is left to the driver, which uses no TLS then. */
export function withTls(url: string): Target {
  const target = new URL(url);
  const params = new Map(target.searchParams);
  const mode = params.get("sslmode") ?? process.env.PGSSLMODE;
  if (mode === undefined) return { connectionString: url };
  if (!MODES.includes(mode)) {
    throw new OperatorError(`sslmode must be disable, require, verify-ca or verify-full, not ${mode}`);
  }
  // what the driver finds in the URL would win
  for (const name of PARAMS) target.searchParams.delete(name);
  const connectionString = target.href;
  if (mode === "disable") return { connectionString, ssl: false };
  const ssl = { ...filesOf(params), ...checksOf(mode, params.get("sslrootcert")) };
  return { connectionString, ssl, ...(params.get("sslnegotiation") === "direct" && { sslnegotiation: "direct" }) };
}

/** What the server must show. A `require` that names an authority is a `verify-ca`. */
function checksOf(mode: string, root: string | undefined): ConnectionOptions {
  if (mode === "verify-full") return {};
  if (root !== undefined && root !== "system") return { checkServerIdentity: () => undefined };
  if (mode === "require") return { rejectUnauthorized: false };
  throw new OperatorError("sslmode=verify-ca needs sslrootcert=FILE, the certificate of the server's authority");
}

/** "system" stands for the public authorities that Node knows. */
function filesOf(params: Map<string, string>): ConnectionOptions {
  const root = params.get("sslrootcert");
  const files: ConnectionOptions = {};
  if (root !== undefined && root !== "system") files.ca = certificate("sslrootcert", root);
  if (params.has("sslcert")) files.cert = certificate("sslcert", params.get("sslcert")!);
  if (params.has("sslkey")) files.key = read("sslkey", params.get("sslkey")!);
  return files;
}

function certificate(param: string, file: string): string {
  const text = read(param, file);
  try {
    new X509Certificate(text);
  } catch (cause) {
    throw new OperatorError(`${param} ${file} has no certificate in PEM format`, { cause });
  }
  return text;
}

function read(param: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new OperatorError(`cannot read ${param}: ${(cause as Error).message}`, { cause });
  }
}

const UNKNOWN_AUTHORITY = "name the file with its authority's certificate: sslrootcert=FILE";
const NOT_NOW = "renew the server's certificate, or correct the clock";

/** By the codes of OpenSSL and Node. */
const FIXES: Record<string, string> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  CERT_SIGNATURE_FAILURE: UNKNOWN_AUTHORITY,
  CERT_HAS_EXPIRED: NOT_NOW,
  CERT_NOT_YET_VALID: NOT_NOW,
  ERR_TLS_CERT_ALTNAME_INVALID: "use a name that is in the server's certificate, or sslmode=verify-ca",
};

/** Why there is no TLS, for the operator; null = something else is wrong. */
export function whyNoTls(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code = "", message } = error as NodeJS.ErrnoException;
  if (FIXES[code] !== undefined) return `${message}: ${FIXES[code]}`;
  if (message === "The server does not support SSL connections") {
    return "the server offers no TLS: set ssl = on in its postgresql.conf, or sslmode=disable on a network that you trust";
  }
  if (code === "28000" && message.endsWith("no encryption")) {
    return `${message}: the server wants TLS: add sslmode=verify-full to the URL`;
  }
  return null;
}
