// One server for all tests of a file, and what several files ask of it.
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { TSchema } from "typebox";
import { afterAll, beforeAll, expect } from "vitest";
import { startTestServer, type TestServer, type TestServerOptions } from "./test-server.ts";

/** Runs from before the first test to after the last; not to be used outside of them. */
export function shared<Server extends { close(): Promise<unknown> }>(start: () => Promise<Server>): Server {
  const server = {} as Server;
  beforeAll(async () => {
    Object.assign(server, await start());
  });
  afterAll(() => server.close());
  return server;
}

export function sharedServer(options: TestServerOptions = {}): TestServer {
  return shared(() => startTestServer(options));
}

/** A conversation the fake model answers with twelve tokens, always the same. */
export const babble = { messages: [{ role: "user", content: "go on" }], max_tokens: 12, temperature: 0 };

const ajv = new Ajv2020({ strict: false });
const compiled = new Map<TSchema, ValidateFunction>();

/** `value` is what the documentation says. */
export function expectShape(schema: TSchema, value: unknown): void {
  const fits = compiled.get(schema) ?? ajv.compile(schema);
  compiled.set(schema, fits);
  expect(fits(value), JSON.stringify([value, fits.errors])).toBe(true);
}
