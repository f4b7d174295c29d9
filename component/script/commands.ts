/**
 * Scripts (`.wast`) of components. In: text. Out: a list of typed commands, each with its line. Components stay tokens
 * until they are requested, so a malformed one, quoted ones included, fails in its own command, and the script
 * continues.
 */
import { readTokens } from "@waft/engine/internal/text/lexer";
import { END, ERROR, LEFT, type Tokens } from "@waft/engine/internal/text/tokens";
import { ComponentCursor } from "../text/component_cursor.ts";
import { componentContent } from "../text/parse_component.ts";
import { parseValues, type ScriptValue } from "./values.ts";

/** A component of a script. */
export interface ScriptComponent {
  /** The binary form. Throws MalformedError. */
  encode(): Uint8Array;
}

/** A call of the function `field` of the instance `instance`, or of the latest one. */
export interface Action {
  readonly instance?: string;
  readonly field: string;
  readonly args: readonly ScriptValue[];
}

/** A command of a script. */
export type ScriptCommand =
  & { readonly line: number }
  & (
    /** Compile a component and instantiate it. */
    | { readonly kind: "component"; readonly id?: string; readonly component: ScriptComponent }
    /** Compile a component without an instance. */
    | { readonly kind: "definition"; readonly id?: string; readonly component: ScriptComponent }
    /** Instantiate the definition named `definition`, or the latest. */
    | { readonly kind: "instance"; readonly id?: string; readonly definition?: string }
    /** Let later components import the exports of an instance, or of the latest, as the instance `name`. */
    | { readonly kind: "register"; readonly name: string; readonly instance?: string }
    | { readonly kind: "action"; readonly action: Action }
    | { readonly kind: "assert_return"; readonly action: Action; readonly expected: readonly ScriptValue[] }
    | { readonly kind: "assert_trap"; readonly action: Action; readonly message: string }
    /** The component is valid, and an import of it is missing or has another type. */
    | { readonly kind: "assert_unlinkable"; readonly component: ScriptComponent; readonly message: string }
    /** The component is valid and its instantiation traps. */
    | { readonly kind: "assert_uninstantiable"; readonly component: ScriptComponent; readonly message: string }
    | { readonly kind: Rejection; readonly component: ScriptComponent; readonly message: string }
  );

/** Assertions that a component is rejected. */
type Rejection = "assert_invalid" | "assert_malformed";

/** Whether a command of the script contains a component. The script need not be well-formed. */
export function isComponentScript(text: string | Uint8Array): boolean {
  const cursor = new ComponentCursor(readTokens(text));
  while (cursor.kind === LEFT) {
    if (cursor.isOpening("component")) return true;
    if (cursor.wordAt(cursor.at + 1)?.startsWith("assert_") === true) {
      cursor.at += 2;
      if (cursor.isOpening("component")) return true;
      cursor.at -= 2;
    }
    if (!skipList(cursor)) return false;
  }
  return false;
}

/** Skips a list in parentheses; false if it has no end. */
function skipList(cursor: ComponentCursor): boolean {
  cursor.at++;
  try {
    cursor.skipToClose();
    return true;
  } catch {
    return false;
  }
}

/** Parses a script. Throws MalformedError if a command itself is malformed. */
export function parseComponentScript(text: string | Uint8Array): ScriptCommand[] {
  const cursor = new ComponentCursor(readTokens(text));
  const commands: ScriptCommand[] = [];
  while (cursor.kind !== END && cursor.kind !== ERROR) commands.push(parseCommand(cursor));
  if (cursor.kind === ERROR) cursor.unexpectedToken();
  return commands;
}

function parseCommand(cursor: ComponentCursor): ScriptCommand {
  const line = cursor.tokens.lineOf(cursor.tokens.starts[cursor.at]);
  if (cursor.isOpening("component", "instance")) return parseInstance(cursor, line);
  if (cursor.isOpening("component")) {
    const kind = cursor.isOpening("component", "definition") ? "definition" : "component";
    return { kind, line, ...takeComponent(cursor) };
  }
  if (cursor.isOpening("invoke")) return { kind: "action", line, action: parseAction(cursor) };
  const start = cursor.at;
  if (cursor.kind !== LEFT) return cursor.unexpectedToken();
  cursor.at++;
  const command = parseRest(cursor, cursor.word(), line);
  if (command === undefined) return cursor.unexpectedToken(start + 1);
  cursor.expectClose();
  return command;
}

/** Parses the rest of `(component instance $id? $definition?)`. */
function parseInstance(cursor: ComponentCursor, line: number): ScriptCommand {
  cursor.takeOpening("component", "instance");
  const id = cursor.id();
  const definition = cursor.id();
  cursor.expectClose();
  return {
    kind: "instance",
    line,
    ...(id === undefined ? {} : { id }),
    ...(definition === undefined ? {} : { definition }),
  };
}

/** Parses a command after its word, up to its parenthesis. */
function parseRest(cursor: ComponentCursor, word: string, line: number): ScriptCommand | undefined {
  switch (word) {
    case "assert_return": {
      const action = parseAction(cursor);
      return { kind: word, line, action, expected: parseValues(cursor) };
    }
    case "assert_trap": {
      if (!cursor.isOpening("component")) {
        const action = parseAction(cursor);
        return { kind: word, line, action, message: cursor.name() };
      }
      const { component } = takeComponent(cursor);
      return { kind: "assert_uninstantiable", line, component, message: cursor.name() };
    }
    case "register": {
      const name = cursor.name();
      const instance = cursor.id();
      return { kind: word, line, name, ...(instance === undefined ? {} : { instance }) };
    }
    case "assert_unlinkable":
    case "assert_invalid":
    case "assert_malformed": {
      const { component } = takeComponent(cursor);
      return { kind: word, line, component, message: cursor.name() };
    }
  }
  return undefined;
}

function parseAction(cursor: ComponentCursor): Action {
  cursor.expectOpening("invoke");
  const instance = cursor.id();
  const field = cursor.name();
  const args = parseValues(cursor);
  cursor.expectClose();
  return { ...(instance === undefined ? {} : { instance }), field, args };
}

/** Skips `(component definition? $id? …)`, to be parsed on request. */
function takeComponent(cursor: ComponentCursor): { readonly id?: string; readonly component: ScriptComponent } {
  cursor.expectOpening("component");
  cursor.takeWord("definition");
  const content = cursor.at;
  const id = cursor.id();
  cursor.skipToClose();
  return { ...(id === undefined ? {} : { id }), component: new TextComponent(cursor.tokens, content) };
}

class TextComponent implements ScriptComponent {
  readonly #tokens: Tokens;
  /** First token after `(component definition?`. */
  readonly #content: number;

  constructor(tokens: Tokens, content: number) {
    this.#tokens = tokens;
    this.#content = content;
  }

  encode(): Uint8Array {
    return componentContent(new ComponentCursor(this.#tokens, this.#content));
  }
}
