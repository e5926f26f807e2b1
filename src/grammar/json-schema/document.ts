// The schema document: resolves references to subschemas. Supports $id (and draft 4's id), $anchor and $dynamicAnchor of
// embedded schemas, and the meta-schemas of the drafts. Looks for them only where the standard allows schemas, never inside
// enum, const or default. Never fetches anything.

import {
  DRAFT_3_ASSERTIONS,
  isEnforced,
  isObject,
  isSchema,
  isUnknown,
  type JsonValue,
  type Schema,
  type SchemaObject,
  schemaError,
  wrongType,
} from "./keywords.ts";
import { metaSchema } from "./meta-schemas.ts";

/** Keywords whose value is a schema, a list of schemas, or an object of schemas. */
const ONE_OR_SEVERAL = [
  "additionalItems",
  "additionalProperties",
  "allOf",
  "anyOf",
  "contains",
  "else",
  "if",
  "items",
  "not",
  "oneOf",
  "prefixItems",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties",
];
const BY_NAME = ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/** A schema with its own id. Pointers inside it start there. */
interface Resource {
  readonly base: string;
  readonly root: SchemaObject;
}

const NO_BASE = "schema:/";

export class SchemaDocument {
  /** Keywords that no draft defines, in order of appearance. */
  readonly ignored = new Set<string>();
  /** In draft 4 and before, 1.0 is not an integer. */
  readonly wholeFractions: boolean;
  /** Whether items that match "contains" count as evaluated: before draft 2020-12, they did not. */
  readonly containsEvaluates: boolean;
  /** Whether some schema asks which properties or items its neighbours have evaluated. */
  readonly tracksEvaluation: boolean;
  readonly #root: SchemaObject;
  readonly #resources = new Map<string, Resource>();
  readonly #anchors = new Map<string, SchemaObject>();
  readonly #dynamic = new Map<string, SchemaObject[]>();
  /** By fragment: what it points to. */
  readonly #targets = new Map<Resource, Map<string, JsonValue | undefined>>();
  readonly #home = new WeakMap<object, Resource>();
  readonly #checked = new WeakMap<object, SchemaObject>();
  readonly #modern: boolean;
  readonly #draft3: boolean;
  readonly #early: boolean;
  #recursiveAnchors = 0;

  constructor(root: Schema) {
    this.#root = typeof root === "boolean" ? {} : root;
    const dialect = typeof this.#root.$schema === "string" ? this.#root.$schema : "";
    this.#modern = /20(?:19|20)-/.test(dialect);
    this.#draft3 = /draft-03/.test(dialect);
    this.#early = /draft-0[4-7]/.test(dialect);
    this.containsEvaluates = !/2019-/.test(dialect);
    this.wholeFractions = !/draft-0[34]/.test(dialect);
    let tracks = false;
    const visit = (schema: SchemaObject): void => {
      tracks ||= schema.unevaluatedItems !== undefined || schema.unevaluatedProperties !== undefined;
    };
    this.#index(this.#root, { base: NO_BASE, root: this.#root }, visit);
    this.tracksEvaluation = tracks;
  }

  /** The schema's enforced keywords, with the JSON types of their values checked. */
  keywords(schema: SchemaObject, path: string): SchemaObject {
    const known = this.#checked.get(schema);
    if (known) return known;
    const kept: Record<string, JsonValue> = {};
    for (const [keyword, value] of Object.entries(schema)) {
      if (this.#draft3 && DRAFT_3_ASSERTIONS.includes(keyword)) {
        throw schemaError(`the schema keyword "${keyword}" is not supported`, path);
      }
      if (isUnknown(keyword)) this.ignored.add(keyword);
      if (!isEnforced(keyword)) continue;
      const wanted = wrongType(keyword, value);
      if (wanted) throw schemaError(`the schema keyword "${keyword}" must be ${wanted}`, path);
      kept[keyword] = value;
    }
    this.#checked.set(schema, kept);
    return kept;
  }

  /**
   * Drafts 4 to 7 ignore what stands beside a $ref, but many validators do not. So it counts, unless nothing is valid
   * then.
   */
  maySkipSiblings(keywords: SchemaObject): boolean {
    return this.#early && keywords.$ref !== undefined && Object.keys(keywords).length > 1;
  }

  /** The target of this schema's `$ref`, `$dynamicRef` or `$recursiveRef`. */
  resolve(schema: SchemaObject, keyword: string, path: string): Schema {
    const reference = schema[keyword] as string;
    const home = this.#home.get(schema) ?? this.#homeOfRoot();
    if (!this.#modern && !reference.startsWith("#") && (schema.$id !== undefined || schema.id !== undefined)) {
      throw schemaError(`"${keyword}" beside "$id" means different things in different drafts`, path);
    }
    const [target, fragment] = reference.startsWith("#")
      ? [home.base, reference.slice(1)]
      : split(absolute(reference, home.base));
    const resource = this.#resources.get(target) ?? this.#metaSchema(target);
    const shown = JSON.stringify(reference.slice(0, 80));
    if (!resource) throw schemaError(`"${keyword}" may only point into the same schema (#/…), not to ${shown}`, path);
    const found = this.#found(resource, fragment);
    if (!isSchema(found)) throw schemaError(`"${keyword}" ${shown} points to nothing`, path);
    if (typeof found === "boolean") return found;
    if (!this.#home.has(found)) this.#index(found, resource, () => {});
    if (keyword === "$recursiveRef" && this.#recursiveAnchors > 1) this.#refuseDynamic(keyword, path);
    if (keyword === "$dynamicRef" && found.$dynamicAnchor === fragment) {
      if (this.#dynamic.get(fragment)!.length > 1) this.#refuseDynamic(keyword, path);
    }
    return found;
  }

  #metaSchema(address: string): Resource | undefined {
    const root = metaSchema(address);
    if (root === null) return undefined;
    const resource = { base: address, root };
    this.#resources.set(address, resource);
    this.#index(root, resource, () => {});
    return resource;
  }

  #refuseDynamic(keyword: string, path: string): never {
    throw schemaError(`"${keyword}" is only supported when a single schema has its anchor`, path);
  }

  #homeOfRoot(): Resource {
    return this.#home.get(this.#root)!;
  }

  #found(resource: Resource, fragment: string): JsonValue | undefined {
    let known = this.#targets.get(resource);
    if (known === undefined) {
      known = new Map();
      this.#targets.set(resource, known);
    }
    if (!known.has(fragment)) {
      known.set(fragment, this.#find(resource, fragment) ?? this.#find(this.#homeOfRoot(), fragment));
    }
    return known.get(fragment);
  }

  #find({ base, root }: Resource, fragment: string): JsonValue | undefined {
    if (fragment !== "" && !fragment.startsWith("/")) return this.#anchors.get(`${base}#${decoded(fragment)}`);
    let at: JsonValue | undefined = root as JsonValue;
    for (const part of fragment.split("/").slice(1)) {
      const key = decoded(part).replaceAll("~1", "/").replaceAll("~0", "~");
      if (Array.isArray(at)) at = at[Number(key)];
      else at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
    }
    return at;
  }

  #index(start: SchemaObject, home: Resource, visit: (schema: SchemaObject) => void): void {
    const queue: [JsonValue, Resource][] = [[start as JsonValue, home]];
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      const [value, outer] = next;
      if (Array.isArray(value)) queue.push(...value.map((each): [JsonValue, Resource] => [each, outer]));
      if (!isObject(value) || this.#home.has(value)) continue;
      visit(value);
      const inner = this.#enter(value, outer);
      for (const keyword of ONE_OR_SEVERAL) if (Object.hasOwn(value, keyword)) queue.push([value[keyword]!, inner]);
      for (const keyword of BY_NAME) {
        const named = Object.hasOwn(value, keyword) ? value[keyword] : undefined;
        if (isObject(named)) queue.push(...Object.values(named).map((each): [JsonValue, Resource] => [each, inner]));
      }
    }
  }

  #enter(schema: SchemaObject, outer: Resource): Resource {
    let resource = outer;
    const id = typeof schema.$id === "string" ? schema.$id : schema.id;
    // Drafts before 2019-09 ignore the other keywords beside $ref, including $id.
    const counts = typeof id === "string" && (this.#modern || schema.$ref === undefined || outer.root === schema);
    if (counts) {
      const [base, fragment] = split(absolute(id, outer.base));
      if (fragment !== "") this.#anchors.set(`${outer.base}#${decoded(fragment)}`, schema);
      else resource = { base, root: schema };
    }
    if (!this.#resources.has(resource.base)) this.#resources.set(resource.base, resource);
    if (outer.root === schema && !this.#resources.has(NO_BASE)) this.#resources.set(NO_BASE, resource);
    this.#home.set(schema, resource);
    for (const name of [schema.$anchor, schema.$dynamicAnchor]) {
      if (typeof name === "string") this.#anchors.set(`${resource.base}#${name}`, schema);
    }
    const dynamic = schema.$dynamicAnchor;
    if (typeof dynamic === "string") this.#dynamic.set(dynamic, [...(this.#dynamic.get(dynamic) ?? []), schema]);
    if (schema.$recursiveAnchor === true) this.#recursiveAnchors++;
    return resource;
  }
}

function absolute(reference: string, base: string): string {
  try {
    return new URL(reference, base).href;
  } catch {
    return reference; // not a URI, so it stays as it is
  }
}

function split(uri: string): [base: string, fragment: string] {
  const at = uri.indexOf("#");
  return at < 0 ? [uri, ""] : [uri.slice(0, at), uri.slice(at + 1)];
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a % that escapes nothing is literal
  }
}
