// $ref inside one document: "#", "#/json/pointer" and "#anchor". Nothing is ever fetched.

import { isObject, isSchema, type JsonValue, type Schema, schemaError } from "./keywords.ts";

export class References {
  readonly #root: Schema;
  #anchors: Map<string, Schema> | null = null;

  constructor(root: Schema) {
    this.#root = root;
  }

  resolve(reference: string, path: string): Schema {
    if (!reference.startsWith("#")) {
      throw schemaError(
        `"$ref" may only point into the same schema (#/…), not to ${JSON.stringify(reference.slice(0, 80))}`,
        path,
      );
    }
    const found = this.#find(reference.slice(1));
    if (!isSchema(found)) throw schemaError(`"$ref" ${JSON.stringify(reference.slice(0, 80))} points to nothing`, path);
    return found;
  }

  #find(fragment: string): JsonValue | undefined {
    if (fragment !== "" && !fragment.startsWith("/")) return this.#anchor(fragment);
    let at: JsonValue | undefined = this.#root as JsonValue;
    for (const part of fragment.split("/").slice(1)) {
      const key = decoded(part).replaceAll("~1", "/").replaceAll("~0", "~");
      if (Array.isArray(at)) at = at[Number(key)];
      else at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
    }
    return at;
  }

  #anchor(name: string): Schema | undefined {
    if (!this.#anchors) {
      this.#anchors = new Map();
      const queue: JsonValue[] = [this.#root as JsonValue];
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
        if (isObject(next) && typeof next.$anchor === "string") this.#anchors.set(next.$anchor, next);
        if (typeof next === "object" && next !== null) queue.push(...Object.values(next));
      }
    }
    return this.#anchors.get(name);
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a % that escapes nothing stands for itself
  }
}
