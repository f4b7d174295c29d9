/**
 * The component model's scripts as text. In: a script. Out: its commands that contain a component, in order, each with the
 * binary form of the component on request. Works without the suite's binaries.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ComponentCursor } from "../../component/text/component_cursor.ts";
import { componentContent } from "../../component/text/parse_component.ts";
import { readTokens } from "../../engine/text/lexer.ts";
import { END, STRING } from "../../engine/text/tokens.ts";
import { scriptFolder, scriptNames, suiteNamed } from "./suites.ts";

const SUITE = suiteNamed("components");

/** A component in a script. */
interface TextComponent {
  /** The command: `component`, `definition`, `assert_invalid`, … */
  readonly command: string;
  readonly line: number;
  /** The message of an assertion. */
  readonly message: string;
  /** The binary form. Throws MalformedError. */
  readonly encode: () => Uint8Array;
}

/** Names of the scripts, such as `validation/abi.wast`. */
export function textScripts(): string[] {
  return scriptNames(SUITE);
}

/** The components of a script, in order. */
export function componentsOf(script: string): TextComponent[] {
  const cursor = new ComponentCursor(readTokens(new Uint8Array(readFileSync(join(scriptFolder(SUITE), script)))));
  const found: TextComponent[] = [];
  while (cursor.kind !== END) {
    const start = cursor.at;
    const component = readCommand(cursor, start);
    if (component !== undefined) found.push(component);
    cursor.at = start + 1;
    cursor.skipToClose();
  }
  return found;
}

function readCommand(cursor: ComponentCursor, start: number): TextComponent | undefined {
  const line = cursor.tokens.lineOf(cursor.tokens.starts[start]);
  if (cursor.takeOpening("component")) {
    if (cursor.wordAt(cursor.at) === "instance") return undefined;
    const command = cursor.takeWord("definition") ? "definition" : "component";
    return { command, line, message: "", encode: encoder(cursor, cursor.at) };
  }
  const command = cursor.wordAt(start + 1) ?? "";
  cursor.at = start + 2;
  if (!command.startsWith("assert_") || !cursor.takeOpening("component")) return undefined;
  const encode = encoder(cursor, cursor.at);
  cursor.skipToClose();
  return { command, line, message: cursor.kind === STRING ? cursor.name() : "", encode };
}

function encoder(cursor: ComponentCursor, at: number): () => Uint8Array {
  return () => componentContent(new ComponentCursor(cursor.tokens, at));
}
