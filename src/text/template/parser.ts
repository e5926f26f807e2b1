// Parses a template: text, printed expressions and the statements that chat templates use. Statements that load other
// templates (include, import, extends) are refused.

import { parseArguments, parseExpression, parseFilter, parseTuple } from "./expression-parser.ts";
import { TokenStream, tokenize } from "./lexer.ts";
import {
  type Expression,
  type Filter,
  type MacroBody,
  mentions,
  type Parameter,
  type Statement,
  type Target,
} from "./syntax.ts";

export function parseTemplate(source: string): Statement[] {
  return new Parser(new TokenStream(tokenize(source))).template();
}

class Parser {
  readonly #stream: TokenStream;
  /** Whether `break` and `continue` have a loop to act on. */
  #isInLoop = false;

  constructor(stream: TokenStream) {
    this.#stream = stream;
  }

  template(): Statement[] {
    const body = this.#statements([]);
    if (this.#stream.current.type !== "end") throw this.#stream.unexpected("the end of the template");
    return body;
  }

  /** Statements up to one of the names in `ends`, which is left for the caller after `{%`. */
  #statements(ends: readonly string[]): Statement[] {
    const stream = this.#stream;
    const body: Statement[] = [];
    for (;;) {
      const { type, value, line } = stream.current;
      if (type === "end") {
        if (ends.length > 0) throw stream.unexpected(`{% ${ends.at(-1)} %}`);
        return body;
      }
      stream.take();
      if (type === "text") body.push({ type: "text", line, text: value });
      else if (value === "{{") {
        body.push({ type: "output", line, value: parseTuple(stream) });
        stream.expect("delimiter", "}}");
      } else {
        if (stream.current.type === "name" && ends.includes(stream.current.value)) return body;
        body.push(stream.nested(() => this.#statement(line)));
        stream.expect("delimiter", "%}");
      }
    }
  }

  /** The body of a block, up to and with the name that ends it. */
  #block(end: string): Statement[] {
    this.#stream.expect("delimiter", "%}");
    const body = this.#statements([end]);
    this.#stream.expect("name", end);
    return body;
  }

  #statement(line: number): Statement {
    const stream = this.#stream;
    const keyword = stream.name();
    switch (keyword) {
      case "if":
        return this.#if(line);
      case "for":
        return this.#for(line);
      case "set":
        return this.#set(line);
      case "macro":
        return { type: "macro", line, macro: this.#macro(stream.name(), "endmacro", () => this.#parameters()) };
      case "call": {
        const parameters = stream.isOperator("(") ? this.#parameters() : [];
        const call = parseExpression(stream);
        if (call.type !== "call") throw stream.error("{% call %} needs a call");
        return { type: "call block", line, call, caller: this.#macro("caller", "endcall", () => parameters) };
      }
      case "filter": {
        const filters = [parseFilter(stream), ...this.#filters()];
        return { type: "filter block", line, filters, body: this.#block("endfilter") };
      }
      case "with":
        return this.#with(line);
      // Marks what the assistant wrote; it changes nothing in the text.
      case "generation":
        return { type: "with", line, bindings: [], body: this.#block("endgeneration") };
      case "break":
      case "continue":
        if (!this.#isInLoop) throw stream.error(`{% ${keyword} %} stands outside a loop`);
        return { type: keyword, line };
      default:
        throw stream.error(`unknown statement '${keyword}'`);
    }
  }

  #if(line: number): Statement {
    const stream = this.#stream;
    const condition = parseTuple(stream, false);
    stream.expect("delimiter", "%}");
    const body = this.#statements(["elif", "else", "endif"]);
    if (stream.skipName("elif")) {
      return { type: "if", line, condition, body, otherwise: [stream.nested(() => this.#if(line))] };
    }
    const otherwise = stream.skipName("else") ? this.#block("endif") : [];
    if (otherwise.length === 0) stream.skipName("endif");
    return { type: "if", line, condition, body, otherwise };
  }

  #for(line: number): Statement {
    const stream = this.#stream;
    const target = this.#target(false);
    stream.expect("name", "in");
    const iterable = parseTuple(stream, false);
    const condition = stream.skipName("if") ? parseExpression(stream) : null;
    const isRecursive = stream.skipName("recursive");
    stream.expect("delimiter", "%}");
    const body = this.#inside(true, () => this.#statements(["endfor", "else"]));
    const otherwise = stream.skipName("else") ? this.#block("endfor") : [];
    if (otherwise.length === 0) stream.skipName("endfor");
    return { type: "for", line, target, iterable, condition, isRecursive, body, otherwise };
  }

  #set(line: number): Statement {
    const target = this.#target(true);
    if (this.#stream.skipOperator("=")) return { type: "set", line, target, value: parseTuple(this.#stream) };
    const filters = this.#filters();
    return { type: "set block", line, target, filters, body: this.#block("endset") };
  }

  #with(line: number): Statement {
    const stream = this.#stream;
    const bindings: [Target, Expression][] = [];
    while (!stream.is("delimiter", "%}")) {
      if (bindings.length > 0) stream.expect("operator", ",");
      const target = this.#target(false);
      stream.expect("operator", "=");
      bindings.push([target, parseExpression(stream)]);
    }
    return { type: "with", line, bindings, body: this.#block("endwith") };
  }

  #filters(): Filter[] {
    const filters: Filter[] = [];
    while (this.#stream.skipOperator("|")) filters.push(parseFilter(this.#stream));
    return filters;
  }

  #macro(name: string, end: string, parseParameters: () => Parameter[]): MacroBody {
    const parameters = parseParameters();
    const body = this.#inside(false, () => this.#block(end));
    return {
      name,
      parameters,
      body,
      takesMore: mentions(body, "varargs"),
      takesMoreNamed: mentions(body, "kwargs"),
      takesCaller: mentions(body, "caller"),
    };
  }

  #parameters(): Parameter[] {
    const { positional, named, spread, spreadNamed } = parseArguments(this.#stream);
    const names = positional.map((parameter) => {
      if (parameter.type !== "name") throw this.#stream.error("a parameter must be a name");
      return { name: parameter.name, fallback: null };
    });
    if (spread || spreadNamed) throw this.#stream.error("a parameter must be a name");
    return [...names, ...named.map(([name, fallback]) => ({ name, fallback }))];
  }

  #inside<T>(isLoop: boolean, parse: () => T): T {
    const before = this.#isInLoop;
    this.#isInLoop = isLoop;
    const result = parse();
    this.#isInLoop = before;
    return result;
  }

  /** What is assigned to: a name, several with commas, or (`withMember`) an attribute of a namespace. */
  #target(withMember: boolean): Target {
    const first = this.#oneTarget(withMember);
    if (!this.#stream.isOperator(",")) return first;
    const items = [first];
    while (this.#stream.skipOperator(",") && this.#startsTarget()) items.push(this.#oneTarget(withMember));
    return { type: "targets", items };
  }

  #startsTarget(): boolean {
    return this.#stream.isOperator("(") || (this.#stream.current.type === "name" && !this.#stream.isName("in"));
  }

  #oneTarget(withMember: boolean): Target {
    const stream = this.#stream;
    if (stream.skipOperator("(")) {
      const inner = stream.nested(() => this.#target(withMember));
      stream.expect("operator", ")");
      return inner;
    }
    const name = stream.name();
    if (/^(?:true|false|none)$/i.test(name)) throw stream.error(`nothing can be assigned to '${name}'`);
    return withMember && stream.skipOperator(".")
      ? { type: "member", object: name, name: stream.name() }
      : { type: "name", name };
  }
}
