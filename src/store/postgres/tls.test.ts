// TLS between a store and a real PostgreSQL server, whose certificate each test chooses.
import { chmodSync, chownSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { findOwner } from "../../../test/postgres/account.ts";
import { type Certificate, newAuthority } from "../../../test/postgres/certificates.ts";
import { query } from "../../../test/postgres/start-postgres.ts";
import { usePostgres } from "../../../test/postgres/use-postgres.ts";
import { OperatorError } from "../../errors/faults.ts";
import { openPostgres } from "./open.ts";

const postgres = usePostgres({ tcp: true });
const authority = newAuthority("Flywheel test");
const folder = mkdtempSync(join(tmpdir(), "tls-"));
let url: string;

const inFolder = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const root = inFolder("root.crt", authority.certificate);
const wrongRoot = inFolder("wrong.crt", newAuthority("Somebody else").certificate);

beforeAll(async () => {
  url = await postgres().createDatabase();
});

const withParams = (params: Record<string, string>) => `${url}?${new URLSearchParams(params)}`;

/** Whether the connections of a store are encrypted, or the line that the operator reads. */
async function opened(params: Record<string, string>): Promise<boolean | string> {
  try {
    const store = await openPostgres(withParams(params));
    const row = await store.get<{ ssl: boolean }>("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
    await store.close();
    return row!.ssl;
  } catch (error) {
    expect(error).toBeInstanceOf(OperatorError);
    expect((error as Error).message).not.toMatch(/\n|flywheel-test\b/);
    return (error as Error).message;
  }
}

/** The server's data folder is where it looks for its certificate. */
function writeServerFile(name: string, text: string): void {
  const path = join(postgres().socketDir!, "data", name);
  writeFileSync(path, text);
  chmodSync(path, 0o600);
  const owner = findOwner();
  if (owner !== null) chownSync(path, owner.uid, owner.gid);
}

async function useCertificate({ certificate, key }: Certificate): Promise<void> {
  writeServerFile("server.crt", certificate);
  writeServerFile("server.key", key);
  await query(postgres().url, "ALTER SYSTEM SET ssl = on");
  await postgres().restart("fast");
}

it("needs a server with TLS, unless it is told not to", async () => {
  expect(await opened({})).toBe(false);
  expect(await opened({ sslmode: "disable" })).toBe(false);
  expect(await opened({ sslmode: "require" })).toMatch(
    /: the server offers no TLS: set ssl = on in its postgresql\.conf, or sslmode=disable on a network that you trust$/,
  );
});

it("refuses what it would not do as psql does, before it connects", async () => {
  const modes = "sslmode must be disable, require, verify-ca or verify-full, not";
  expect(await opened({ sslmode: "prefer" })).toMatch(`${modes} prefer`);
  expect(await opened({ sslmode: "verify_full" })).toMatch(`${modes} verify_full`);
  expect(await opened({ sslmode: "verify-ca" })).toMatch(/sslmode=verify-ca needs sslrootcert=FILE/);
  const missing = join(folder, "missing.crt");
  expect(await opened({ sslmode: "verify-full", sslrootcert: missing })).toMatch(
    /: cannot read sslrootcert: ENOENT.*missing\.crt/,
  );
  const garbage = inFolder("garbage.crt", "no certificate");
  expect(await opened({ sslmode: "verify-full", sslrootcert: garbage })).toMatch(
    /: sslrootcert .*garbage\.crt has no certificate in PEM format/,
  );
});

describe("with a certificate for its address", () => {
  beforeAll(() => useCertificate(authority.issue({ ip: "127.0.0.1" })));

  it("encrypts as sslmode says", async () => {
    expect(await opened({ sslmode: "require" })).toBe(true);
    expect(await opened({ sslmode: "require", sslrootcert: root })).toBe(true);
    expect(await opened({ sslmode: "verify-ca", sslrootcert: root })).toBe(true);
    expect(await opened({ sslmode: "verify-full", sslrootcert: root })).toBe(true);
    expect(await opened({ sslmode: "disable" })).toBe(false);
    expect(await opened({})).toBe(false);
  });

  it("trusts no authority that it was not told about", async () => {
    const unknown = /certificate.*: name the file with its authority's certificate: sslrootcert=FILE$/;
    expect(await opened({ sslmode: "verify-full" })).toMatch(unknown);
    expect(await opened({ sslmode: "verify-full", sslrootcert: "system" })).toMatch(unknown);
    expect(await opened({ sslmode: "verify-full", sslrootcert: wrongRoot })).toMatch(unknown);
    expect(await opened({ sslmode: "verify-ca", sslrootcert: wrongRoot })).toMatch(unknown);
    expect(await opened({ sslmode: "require", sslrootcert: wrongRoot })).toMatch(unknown);
  });

  it("takes the mode from PGSSLMODE where the URL has none, as psql does", async () => {
    process.env.PGSSLMODE = "require";
    try {
      expect(await opened({})).toBe(true);
      expect(await opened({ sslmode: "disable" })).toBe(false);
    } finally {
      delete process.env.PGSSLMODE;
    }
  });

  it("says that a server wants TLS", async () => {
    const rules = join(postgres().socketDir!, "data", "pg_hba.conf");
    const before = readFileSync(rules, "utf8");
    writeServerFile("pg_hba.conf", before.replace(/^host /gm, "hostssl "));
    await postgres().restart("fast");
    try {
      expect(await opened({})).toMatch(
        /no pg_hba\.conf entry.*: the server wants TLS: add sslmode=verify-full to the URL$/,
      );
      expect(await opened({ sslmode: "verify-full", sslrootcert: root })).toBe(true);
    } finally {
      writeServerFile("pg_hba.conf", before);
      await postgres().restart("fast");
    }
  });

  it("keeps a store going whose files go away", async () => {
    const passing = inFolder("passing.crt", authority.certificate);
    const store = await openPostgres(withParams({ sslmode: "verify-full", sslrootcert: passing }));
    const heard: string[] = [];
    store.listen("news", (payload) => heard.push(payload));
    await expect.poll(() => heard).toEqual([""]);
    writeFileSync(passing, "");
    await postgres().restart("fast");
    // "" again: the listener has connected anew
    await expect.poll(() => heard.length).toBeGreaterThan(1);
    expect(await store.get("SELECT 1 AS one")).toEqual({ one: 1 });
    await store.close();
  });
});

it("refuses an expired certificate, unless it need not look", async () => {
  await useCertificate(authority.issue({ ip: "127.0.0.1", expired: true }));
  expect(await opened({ sslmode: "verify-full", sslrootcert: root })).toMatch(
    /certificate has expired: renew the server's certificate, or correct the clock$/,
  );
  expect(await opened({ sslmode: "verify-ca", sslrootcert: root })).toMatch(/certificate has expired/);
  expect(await opened({ sslmode: "require" })).toBe(true);
});

it("refuses a certificate for another host", async () => {
  await useCertificate(authority.issue({ dns: "db.example" }));
  expect(await opened({ sslmode: "verify-full", sslrootcert: root })).toMatch(
    /127\.0\.0\.1 is not in the cert's list.*: use a name that is in the server's certificate, or sslmode=verify-ca$/,
  );
  expect(await opened({ sslmode: "verify-ca", sslrootcert: root })).toBe(true);
});
