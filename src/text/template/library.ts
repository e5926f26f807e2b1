// The template library behind types of our own: its declarations do not resolve under Node's module rules, so that
// everything imported from it would silently be `any`. Only this file imports it.

import * as jinja from "@huggingface/jinja";
import type { AstNode } from "./ast.ts";

/** A value of the template language: `type` names the kind, `value` holds it (a Map for objects, an array for lists). */
export interface TemplateValue {
  readonly type: string;
  readonly value: unknown;
  /** Its methods. */
  readonly builtins?: ReadonlyMap<string, TemplateValue>;
  __bool__(): { value: boolean };
}

/** The variables of a template. */
export interface TemplateEnvironment {
  /** Converts a plain value or function; a name can be set once. */
  set(name: string, value: unknown): TemplateValue;
  setVariable(name: string, value: TemplateValue): void;
  lookupVariable(name: string): TemplateValue;
  /** Those of this scope alone. */
  readonly variables: ReadonlyMap<string, TemplateValue>;
}

interface LibraryInterpreterShape {
  run(program: AstNode): TemplateValue;
  evaluate(node: AstNode | undefined, environment: TemplateEnvironment): TemplateValue;
}

export const LibraryInterpreter = jinja.Interpreter as unknown as new (
  environment: TemplateEnvironment,
) => LibraryInterpreterShape;

export const LibraryEnvironment = jinja.Environment as unknown as new (
  parent?: TemplateEnvironment,
) => TemplateEnvironment;

/** Whitespace around blocks is treated as transformers does; every kind of line end is a newline, as in Jinja. */
export function parseSource(source: string): AstNode {
  const tokens = jinja.tokenize(source.replace(/\r\n?/g, "\n"), { lstrip_blocks: true, trim_blocks: true });
  return jinja.parse(tokens) as unknown as AstNode;
}
