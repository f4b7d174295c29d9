/**
 * Scripts (`.wast`) of the specification's suite. In: text. Out: a list of typed commands, each with its line.
 *
 * Modules stay tokens until they are requested, so a malformed or invalid one, quoted ones included, fails where it is
 * used, and the script continues. The commands are those of the reference interpreter and of the threads proposal.
 */
import { decodeModule } from "../binary/decode.ts";
import type { Module } from "../wasm/module.ts";
import { K } from "./keywords.ts";
import { readTokens } from "./lexer.ts";
import { readingText } from "./not_text.ts";
import { bareModule, moduleContent } from "./parse_module.ts";
import { isField, skipFields } from "./scan_fields.ts";
import { type ConstValue, type ExpectedValue, parseArguments, parseExpectedValues } from "./script_values.ts";
import { NO_SYMBOL } from "./symbols.ts";
import { TokenCursor } from "./token_cursor.ts";
import { END, RIGHT, type Tokens } from "./tokens.ts";

interface ModuleSpan {
  start: number;
  end: number;
  /** First token after `(module definition? $id?`. */
  content: number;
  /** The symbol of the identifier. */
  symbol: number;
  /** Fields without `(module …)` around them. */
  bare: boolean;
}

/** A module in a script, parsed on request. */
export class ScriptModule {
  /** Its name in the script, without the `$`. */
  readonly id: string | undefined;
  readonly form: "text" | "binary" | "quote";
  readonly line: number;
  readonly #tokens: Tokens;
  /** Tokens of the whole module command, and of the content after its header. */
  readonly #span: ModuleSpan;

  constructor(tokens: Tokens, span: ModuleSpan, form: "text" | "binary" | "quote", id: string | undefined) {
    this.form = form;
    this.id = id;
    this.line = tokens.lineOf(tokens.starts[span.start]);
    this.#tokens = tokens;
    this.#span = span;
  }

  /** Its text in the script, `(module …)` or bare fields. */
  get text(): string {
    const { source, starts, ends } = this.#tokens;
    return new TextDecoder().decode(source.subarray(starts[this.#span.start], ends[this.#span.end - 1]));
  }

  /** The binary form. Throws MalformedError; in a quoted module the place is within the quoted text. */
  encode(): Uint8Array {
    const { content, symbol, bare } = this.#span;
    const cursor = new TokenCursor(this.#tokens, content);
    return bare ? bareModule(cursor) : moduleContent(cursor, symbol);
  }

  /** The module. Throws MalformedError. */
  parse(): Module {
    return decodeModule(this.encode());
  }
}

/** An action on an instance: the one named `module`, or the latest. */
export type Action =
  | { kind: "invoke"; module?: string; field: string; args: ConstValue[] }
  | { kind: "get"; module?: string; field: string };

export type Command =
  & { line: number }
  & (
    /** Define a module and instantiate it. */
    | { kind: "module"; module: ScriptModule }
    /** Define a module without an instance. */
    | { kind: "definition"; module: ScriptModule }
    /** Instantiate the definition named `definition`, or the latest. */
    | { kind: "instance"; id?: string; definition?: string }
    | { kind: "register"; as: string; module?: string }
    | { kind: "action"; action: Action }
    | { kind: "assert_return"; action: Action; expected: ExpectedValue[] }
    | { kind: "assert_trap"; action: Action; message: string }
    | { kind: "assert_trap_module"; module: ScriptModule; message: string }
    | { kind: "assert_exhaustion"; action: Action; message: string }
    | { kind: "assert_exception"; action: Action }
    | { kind: "assert_suspension"; action: Action; message: string }
    | { kind: ModuleAssertion; module: ScriptModule; message: string }
    /** Run commands in a separate thread, which can access the `shared` modules. */
    | { kind: "thread"; id?: string; shared: string[]; commands: Command[] }
    | { kind: "wait"; thread?: string }
  );

/** Assertions that a module is rejected. */
type ModuleAssertion =
  | "assert_malformed"
  | "assert_invalid"
  | "assert_unlinkable"
  | "assert_malformed_custom"
  | "assert_invalid_custom";

const MODULE_ASSERTIONS: ReadonlyMap<number, ModuleAssertion> = new Map([
  [K.assert_malformed, "assert_malformed"],
  [K.assert_invalid, "assert_invalid"],
  [K.assert_unlinkable, "assert_unlinkable"],
  [K.assert_malformed_custom, "assert_malformed_custom"],
  [K.assert_invalid_custom, "assert_invalid_custom"],
]);

/** Limit on the nesting of threads. */
const THREAD_LIMIT = 8;

/** Parses a script. Throws MalformedError if a command itself is malformed. */
export function parseScript(text: string | Uint8Array): Command[] {
  return readingText(text, () => {
    const cursor = new TokenCursor(readTokens(text));
    const commands: Command[] = [];
    while (cursor.kind !== END) commands.push(parseCommand(cursor, 0));
    return commands;
  });
}

function lineOf({ tokens, at }: TokenCursor): number {
  return tokens.lineOf(tokens.starts[at]);
}

/** Parses an identifier; returns its text. */
function takeId(cursor: TokenCursor): string | undefined {
  const symbol = cursor.takeId();
  return symbol === NO_SYMBOL ? undefined : cursor.tokens.symbols.text(symbol);
}

function parseCommand(cursor: TokenCursor, nesting: number): Command {
  const line = lineOf(cursor);
  if (isField(cursor)) return { kind: "module", line, module: takeBareModule(cursor) };
  const keyword = cursor.openKeyword();
  const start = cursor.at;
  if (keyword === K.module) return parseModuleCommand(cursor, line);
  if (keyword < 0) cursor.unexpected(cursor.kind === RIGHT ? start : start + 1);
  if (keyword === K.invoke || keyword === K.get) return { kind: "action", line, action: takeAction(cursor) };
  cursor.at += 2;
  const command = parseRest(cursor, keyword, line, nesting);
  if (command === undefined) return cursor.unexpected(start + 1);
  cursor.expectClose();
  return command;
}

/** Parses a command after its keyword, up to its parenthesis. */
function parseRest(cursor: TokenCursor, keyword: number, line: number, nesting: number): Command | undefined {
  const rejection = MODULE_ASSERTIONS.get(keyword);
  if (rejection !== undefined) {
    const module = takeModule(cursor);
    return { kind: rejection, line, module, message: cursor.name() };
  }
  switch (keyword) {
    case K.register: {
      const as = cursor.name();
      return { kind: "register", line, as, module: takeId(cursor) };
    }
    case K.assert_return: {
      const action = takeAction(cursor);
      return { kind: "assert_return", line, action, expected: parseExpectedValues(cursor) };
    }
    case K.assert_trap: {
      if (cursor.isOpen(K.module)) {
        const module = takeModule(cursor);
        return { kind: "assert_trap_module", line, module, message: cursor.name() };
      }
      const action = takeAction(cursor);
      return { kind: "assert_trap", line, action, message: cursor.name() };
    }
    case K.assert_exhaustion: {
      const action = takeAction(cursor);
      return { kind: "assert_exhaustion", line, action, message: cursor.name() };
    }
    case K.assert_suspension: {
      const action = takeAction(cursor);
      return { kind: "assert_suspension", line, action, message: cursor.name() };
    }
    case K.assert_exception:
      return { kind: "assert_exception", line, action: takeAction(cursor) };
    case K.thread:
      return parseThread(cursor, line, nesting);
    case K.wait:
      return { kind: "wait", line, thread: takeId(cursor) };
  }
  return undefined;
}

function takeAction(cursor: TokenCursor): Action {
  const isGet = cursor.isOpen(K.get);
  if (!isGet && !cursor.isOpen(K.invoke)) cursor.expectOpen(K.invoke);
  cursor.at += 2;
  const module = takeId(cursor);
  const field = cursor.name();
  const action: Action = isGet
    ? { kind: "get", module, field }
    : { kind: "invoke", module, field, args: parseArguments(cursor) };
  cursor.expectClose();
  return action;
}

/** Parses `(module …)` in any form. */
function parseModuleCommand(cursor: TokenCursor, line: number): Command {
  const start = cursor.at;
  cursor.at += 2;
  if (cursor.takeKeyword(K.instance)) {
    const id = takeId(cursor);
    const definition = takeId(cursor);
    cursor.expectClose();
    return { kind: "instance", line, id, definition };
  }
  const kind = cursor.isKeyword(K.definition) ? "definition" : "module";
  cursor.at = start;
  return { kind, line, module: takeModule(cursor) };
}

/** Skips `(module definition? $id? …)`, to be parsed on request. */
function takeModule(cursor: TokenCursor): ScriptModule {
  const { tokens, at: start } = cursor;
  cursor.expectOpen(K.module);
  cursor.takeKeyword(K.definition);
  const symbol = cursor.takeId();
  const id = symbol === NO_SYMBOL ? undefined : tokens.symbols.text(symbol);
  const form = cursor.isKeyword(K.binary) ? "binary" : cursor.isKeyword(K.quote) ? "quote" : "text";
  const content = cursor.at;
  cursor.skipToClose();
  return new ScriptModule(tokens, { start, end: cursor.at, content, symbol, bare: false }, form, id);
}

/** Skips the fields of a module without `(module …)`. */
function takeBareModule(cursor: TokenCursor): ScriptModule {
  const { tokens, at: start } = cursor;
  skipFields(cursor);
  const span = { start, end: cursor.at, content: start, symbol: NO_SYMBOL, bare: true };
  return new ScriptModule(tokens, span, "text", undefined);
}

/** Parses the rest of `(thread $id? (shared (module $id)*)? command*)`. */
function parseThread(cursor: TokenCursor, line: number, nesting: number): Command {
  if (nesting >= THREAD_LIMIT) cursor.fail("threads are nested too deep");
  const id = takeId(cursor);
  const shared: string[] = [];
  while (cursor.takeOpen(K.shared)) {
    while (cursor.takeOpen(K.module)) {
      const module = takeId(cursor);
      if (module === undefined) return cursor.unexpected();
      shared.push(module);
      cursor.expectClose();
    }
    cursor.expectClose();
  }
  const commands: Command[] = [];
  while (cursor.kind !== RIGHT) commands.push(parseCommand(cursor, nesting + 1));
  return { kind: "thread", line, id, shared, commands };
}
