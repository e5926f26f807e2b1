import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { PACKAGE_VERSION } from "../../system/package.ts";
import type { Finding } from "./finding.ts";
import { checkServer } from "./server.check.ts";

it("says that a key has characters that cannot be sent, instead of sending it", async () => {
  const server = createServer((_request, reply) => reply.end(JSON.stringify({ version: PACKAGE_VERSION })));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const data = mkdtempSync(join(tmpdir(), "check-"));
  writeFileSync(join(data, "local-key.json"), JSON.stringify({ url, token: "k\u2603", pid: 1 }), { mode: 0o600 });
  vi.stubEnv("FLYWHEEL_API_KEY", "two\nlines");
  const found: Finding[] = [];
  for await (const finding of checkServer({ data, host: "127.0.0.1", port: 0 })) found.push(finding);
  vi.unstubAllEnvs();
  server.close();
  const text = JSON.stringify(found);
  expect(text).toContain("the key in the data folder is damaged");
  expect(text).toContain("FLYWHEEL_API_KEY has characters that cannot be sent");
});
