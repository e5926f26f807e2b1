// A text that never changes while the server runs, in memory with its compressed forms. A GET costs hardly more than
// finding it: nothing is built or compressed for a request.
import { createHash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";

/** In the order of preference, with the ending of the compressed file. */
export const ENCODINGS = { br: ".br", gzip: ".gz" } as const;
export type Encoding = keyof typeof ENCODINGS;

export interface PageFile {
  type: string;
  body: Buffer;
  compressed: Partial<Record<Encoding, Buffer>>;
  etag: string;
}

export function etagOf(body: Buffer): string {
  return `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
}

/** 304 for whoever has it; else the smallest form that the client takes. */
export function sendPageFile(request: FastifyRequest, reply: FastifyReply, file: PageFile): FastifyReply {
  const vary = reply.getHeader("vary");
  reply.headers({ vary: vary === undefined ? "accept-encoding" : `${vary}, accept-encoding`, etag: file.etag });
  const known = (request.headers["if-none-match"] ?? "").split(/\s*,\s*/).map((tag) => tag.replace(/^W\//, ""));
  if (known.includes(file.etag)) return reply.code(304).send();
  const encoding = bestEncoding(request.headers["accept-encoding"], file);
  if (encoding !== null) reply.header("content-encoding", encoding);
  return reply.type(file.type).send(encoding === null ? file.body : file.compressed[encoding]);
}

/** The best encoding that the client takes and the file has; null: as it is. */
export function bestEncoding(accepted: string | undefined, file: Pick<PageFile, "compressed">): Encoding | null {
  const takes = new Set(
    (accepted ?? "")
      .toLowerCase()
      .split(",")
      .map((part) => part.trim().split(/\s*;\s*/))
      .filter(([, quality]) => !/^q=0(\.0*)?$/.test(quality ?? ""))
      .map(([name]) => name),
  );
  const names = Object.keys(ENCODINGS) as Encoding[];
  return names.find((name) => takes.has(name) && file.compressed[name] !== undefined) ?? null;
}
