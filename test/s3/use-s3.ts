// An S3 server for each test of a file, in whose environment the SDK finds it.

import { afterEach, beforeEach } from "vitest";
import { S3Server } from "./s3-server.ts";

/** Returns a function that gives the server of the running test. */
export function useS3(): () => S3Server {
  let server: S3Server;
  const before = { ...process.env };
  beforeEach(async () => {
    server = await S3Server.start();
    Object.assign(process.env, server.env);
  });
  afterEach(async () => {
    process.env = { ...before };
    await server.close();
  });
  return () => server;
}
