import { chmodSync, mkdtempSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { needing, POSIX } from "../../test/support/needs.ts";
import { LOCAL_KEY_FILE, localServer, readLocalKey, removeLocalKey, writeLocalKey } from "./local-key.ts";

const KEY = { url: "http://127.0.0.1:8123", token: "fw_secret", pid: 4242 };
const fresh = () => mkdtempSync(join(tmpdir(), "flywheel-key-"));

function withKey(key = KEY): string {
  const folder = fresh();
  writeLocalKey(folder, key);
  return folder;
}

describe("the file", () => {
  it("is for its owner only, replaced as a whole, and removed only by its server", () => {
    const folder = withKey({ ...KEY, token: "old" });
    writeLocalKey(folder, KEY);
    expect(readdirSync(folder)).toEqual([LOCAL_KEY_FILE]);
    if (process.platform !== "win32") expect(statSync(join(folder, LOCAL_KEY_FILE)).mode & 0o777).toBe(0o600);
    expect(readLocalKey(folder)).toEqual(KEY);
    removeLocalKey(folder, ["old"]);
    expect(readLocalKey(folder)).toEqual(KEY);
    removeLocalKey(folder, ["old", KEY.token]);
    expect(readLocalKey(folder)).toBeNull();
    expect(readLocalKey(join(folder, "nowhere"))).toBeNull();
  });

  needing(POSIX).it("is refused if others could have read or made it", () => {
    const shared = withKey();
    chmodSync(join(shared, LOCAL_KEY_FILE), 0o640);
    expect(() => readLocalKey(shared)).toThrow(
      /other users can read or change .*mode 0640, not 0600.*start the server/,
    );

    const link = fresh();
    symlinkSync(join(withKey(), LOCAL_KEY_FILE), join(link, LOCAL_KEY_FILE));
    expect(() => readLocalKey(link)).toThrow(/is a link: remove it/);

    const foreign = withKey();
    const me = process as { geteuid: () => number };
    const uid = vi.spyOn(me, "geteuid").mockReturnValue(me.geteuid() + 1);
    try {
      expect(() => readLocalKey(foreign)).toThrow(
        /belongs to another user \(\d+, not \d+\): run the command as that user/,
      );
    } finally {
      uid.mockRestore();
    }
  });

  it("is refused if a server did not write it", () => {
    for (const text of ["", "{", "[]", '{"url":1,"token":"x"}']) {
      const folder = fresh();
      writeFileSync(join(folder, LOCAL_KEY_FILE), text, { mode: 0o600 });
      expect(() => readLocalKey(folder), text).toThrow(/is not what a server wrote/);
    }
  });
});

describe("localServer", () => {
  const data = withKey();
  const local = { baseUrl: `${KEY.url}/v1`, apiKey: KEY.token };

  it("finds the server of the data folder", () => {
    expect(localServer({ data }, {})).toEqual(local);
    expect(localServer({}, { FLYWHEEL_DATA: data })).toEqual(local);
    // OpenAI's own key does not belong to this server
    expect(localServer({ data }, { OPENAI_API_KEY: "sk-openai" })).toEqual(local);
  });

  it("sends the key only to the server that wrote it", () => {
    const apiKey = KEY.token;
    for (const url of ["http://localhost:8123/v1", "http://127.0.0.1:8123", "http://[::1]:8123"]) {
      expect(localServer({ data, url }, {})).toEqual({ baseUrl: url, apiKey });
    }
    for (const url of [
      "http://127.0.0.1:8124",
      "https://127.0.0.1:8123",
      "http://example.com:8123",
      "http://127.0.0.1.example:8123",
    ]) {
      expect(() => localServer({ data, url }, {}), url).toThrow(
        /a token is needed for .*is for http:\/\/127\.0\.0\.1:8123/,
      );
    }
  });

  it("prefers what was given", () => {
    expect(localServer({ data, apiKey: "k" }, {})).toEqual({ ...local, apiKey: "k" });
    expect(localServer({ data }, { FLYWHEEL_API_KEY: "k" })).toEqual({ ...local, apiKey: "k" });
    const env = { OPENAI_BASE_URL: `${KEY.url}/v1`, OPENAI_API_KEY: "k" };
    expect(localServer({ data }, env)).toEqual({ ...local, apiKey: "k" });
    expect(localServer({ data, url: "http://gpu:8000/v1", apiKey: "k" }, {})).toMatchObject({
      baseUrl: "http://gpu:8000/v1",
    });
  });

  it("needs no file if a token was given, and trusts no address from a file of others", () => {
    const apiKey = "k";
    expect(localServer({ data: fresh(), apiKey }, {})).toEqual({ baseUrl: "http://127.0.0.1:8000/v1", apiKey });
    const link = fresh();
    if (process.platform !== "win32") symlinkSync(join(data, LOCAL_KEY_FILE), join(link, LOCAL_KEY_FILE));
    expect(localServer({ data: link, apiKey }, {})).toEqual({ baseUrl: "http://127.0.0.1:8000/v1", apiKey });
  });

  it("says what to do without a token", () => {
    expect(() => localServer({ data: fresh() }, {})).toThrow(
      /no server of yours runs on .* `flywheel serve`, or set FLYWHEEL_API_KEY/,
    );
    const socket = withKey({ url: "unix:/tmp/x", token: "t", pid: 1 });
    expect(() => localServer({ data: socket }, {})).toThrow(/listens on a Unix socket/);
  });
});
