// The parser's view of the tokens: look at the next one, take it if it fits, or fail with its line.

import { TemplateSyntaxError, type Token } from "./lexer.ts";

/** Nested brackets, operators and blocks; templates in use stay below fifty. */
const MAX_DEPTH = 200;

export class TokenStream {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  get current(): Token {
    return this.#tokens[this.#at]!;
  }

  take(): Token {
    const token = this.current;
    if (token.type !== "end") this.#at++;
    return token;
  }

  is(type: Token["type"], value: string, ahead = 0): boolean {
    const token = this.#tokens[this.#at + ahead];
    return token?.type === type && token.value === value;
  }

  isOperator(value: string, ahead = 0): boolean {
    return this.is("operator", value, ahead);
  }

  isName(value: string, ahead = 0): boolean {
    return this.is("name", value, ahead);
  }

  skip(type: Token["type"], value: string): boolean {
    const fits = this.is(type, value);
    if (fits) this.#at++;
    return fits;
  }

  skipOperator(value: string): boolean {
    return this.skip("operator", value);
  }

  skipName(value: string): boolean {
    return this.skip("name", value);
  }

  expect(type: Token["type"], value: string): void {
    if (!this.skip(type, value)) throw this.unexpected(`'${value}'`);
  }

  name(): string {
    if (this.current.type !== "name") throw this.unexpected("a name");
    return this.take().value;
  }

  /** Runs one level of a recursive rule. */
  nested<T>(parse: () => T): T {
    if (++this.#depth > MAX_DEPTH) throw this.error("it is nested too deeply");
    const result = parse();
    this.#depth--;
    return result;
  }

  unexpected(wanted: string): TemplateSyntaxError {
    const { type, value } = this.current;
    return this.error(`expected ${wanted}, found ${type === "end" ? "the end of the template" : `'${value}'`}`);
  }

  error(message: string): TemplateSyntaxError {
    return new TemplateSyntaxError(message, this.current.line);
  }
}
