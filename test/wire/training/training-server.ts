// The training routes on a bare server with two callers, backed by a fake trainer process: what the wire tests talk to.

import Fastify from "fastify";
import { authorize, type Principal } from "../../../src/api/http/auth.ts";
import { parseJsonObject } from "../../../src/api/http/body.ts";
import type { Service } from "../../../src/api/service.ts";
import { trainingRoutes } from "../../../src/api/training/routes.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { createLog } from "../../../src/observe/log.ts";
import { type BenchOptions, type TrainingBench, trainingBench } from "../../support/training-service.ts";

export interface TrainingServer {
  url: string;
  bench: TrainingBench;
  /** JSON in, JSON out; `as` names the caller. */
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>;
  close(): Promise<void>;
}

export interface CallOptions {
  as?: "ann" | "amy" | "bob" | "root" | "guest" | null;
  headers?: Record<string, string>;
  raw?: Uint8Array | string;
}

export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  json: any;
  headers: Headers;
}

const inWorkspace = (id: string, name: string) => ({
  workspace: { id, name, entity: name },
  ...{ expiresAt: null, holder: { kind: "operator", workspace: id } as const, isSession: false },
});

/** Ann and Amy work in one workspace, Bob, the admin Root and Guest each in their own. */
const PRINCIPALS: Record<string, Principal> = {
  ann: { id: "1", name: "ann", scopes: new Set(["training"]), ...inWorkspace("1", "ann") },
  amy: { id: "4", name: "amy", scopes: new Set(["training"]), ...inWorkspace("1", "ann") },
  bob: { id: "2", name: "bob", scopes: new Set(["training", "inference"]), ...inWorkspace("b", "bob") },
  root: { id: "5", name: "root", scopes: new Set(["training", "admin"]), ...inWorkspace("r", "root") },
  guest: { id: "3", name: "guest", scopes: new Set(["inference"]), ...inWorkspace("g", "guest") },
};

export async function startTrainingServer(options: BenchOptions & { maxBytes?: number } = {}): Promise<TrainingServer> {
  const bench = await trainingBench(options);
  const app = Fastify({ routerOptions: { ignoreTrailingSlash: true } });
  // as the real server does: schemas are for the documentation
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => JSON.stringify);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, async (_request: unknown, body: Buffer) =>
    parseJsonObject(body),
  );
  app.decorateRequest("principal", null);
  app.addHook("onRequest", async (request) => {
    const access = request.routeOptions.config.access ?? "admin";
    if (access === "public") return;
    const principal = PRINCIPALS[request.headers.authorization?.replace("Bearer ", "") ?? ""];
    if (!principal) throw new ServiceError("missing_token", "Send a token.");
    request.principal = principal;
    authorize(principal, access);
  });
  const log = createLog({ level: "error", format: "text" });
  const config = { streamStallTimeout: 60, streamBufferBytes: 2 ** 20 };
  const service = { log, metrics: { rejected() {} }, config, access: { watch: () => () => {} } };
  trainingRoutes(bench.service, { maxBytes: options.maxBytes ?? 2 ** 20 })(app, service as unknown as Service);
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return {
    url,
    bench,
    async call(method, path, body, { as = "ann", headers = {}, raw } = {}) {
      const hasBody = body !== undefined || raw !== undefined;
      const response = await fetch(url + path, {
        method,
        headers: {
          ...(as ? { authorization: `Bearer ${as}` } : {}),
          ...(hasBody ? { "content-type": "application/json" } : {}),
          ...headers,
        },
        ...(hasBody ? { body: raw ?? JSON.stringify(body) } : {}),
      });
      const text = await response.text();
      return { status: response.status, json: text === "" ? null : JSON.parse(text), headers: response.headers };
    },
    async close() {
      const closed = app.close();
      // A client that gave up a stream may have opened a connection for the next one, which would wait for its headers.
      app.server.closeAllConnections();
      await closed;
      await bench.close();
    },
  };
}
