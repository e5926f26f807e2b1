// The files of deploy/, as the tests read them.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse, parseAllDocuments } from "yaml";

export const DEPLOY = fileURLToPath(new URL("../../deploy/", import.meta.url));

export function readManifest(file: string): string {
  return readFileSync(join(DEPLOY, file), "utf8");
}

/** Paths from deploy/. */
export function manifestsIn(folder: string): string[] {
  return readdirSync(join(DEPLOY, folder)).map((name) => `${folder}/${name}`);
}

// biome-ignore lint/suspicious/noExplicitAny: checked against a schema first, then read freely.
export type Loose = any;

export function readCompose(): Loose {
  return parse(readManifest("compose/compose.yaml"), { merge: true });
}

export interface KubernetesObject {
  file: string;
  apiVersion: string;
  kind: string;
  body: Loose;
}

export function readKubernetes(): KubernetesObject[] {
  return manifestsIn("kubernetes").flatMap((file) =>
    parseAllDocuments(readManifest(file)).map((document) => {
      const body = document.toJS() as Loose;
      return { file, apiVersion: body.apiVersion, kind: body.kind, body };
    }),
  );
}
