/**
 * Core types in component text. In: the tokens of a core type or module type. Out: its expression. The engine's parser
 * reads them as part of a module that is made of their text, so core types have one grammar.
 */
import { MalformedError } from "@waft/engine/internal/errors";
import { parseModule } from "@waft/engine/internal/text/parse_module";
import { ID, LEFT } from "@waft/engine/internal/text/tokens";
import type { ModuleDeclaration } from "../model/definitions.ts";
import type { CoreTypeExpr } from "../model/definitions.ts";
import type { ComponentCursor } from "./component_cursor.ts";
import type { TextScope } from "./text_scope.ts";

/** A placeholder for a type of another scope: no text describes the same structure. */
const PLACEHOLDER = "(struct (field i8) (field i16) (field i8) (field i16) (field (mut i16)))";

/** The text of tokens `from` up to `to`. */
function slice(cursor: ComponentCursor, from: number, to: number): string {
  const { source, starts, ends } = cursor.tokens;
  return new TextDecoder().decode(source.subarray(starts[from], ends[to - 1]));
}

/** Skips one parenthesized form; returns the token after it. */
function skipForm(cursor: ComponentCursor): number {
  if (cursor.kind !== LEFT) cursor.unexpectedToken();
  cursor.at++;
  cursor.skipToClose();
  return cursor.at;
}

/** Parses the text of a module made for token `at`; an error has the place of that token. */
function parseAt(cursor: ComponentCursor, at: number, text: string): ReturnType<typeof parseModule> {
  try {
    return parseModule(text);
  } catch (error) {
    if (error instanceof MalformedError) cursor.fail(error.message, at);
    throw error;
  }
}

/** Parses `(func …)`, `(struct …)` and the like after `(core type $id?`. */
export function parseCoreType(cursor: ComponentCursor, scope: TextScope): CoreTypeExpr {
  const start = cursor.at;
  return parseInScope(cursor, start, scope, `(type ${slice(cursor, start, skipForm(cursor))})`);
}

/** Parses a recursive group, whose word `rec` is token `word`, up to its parenthesis; `ids` are those of its types. */
export function parseCoreGroup(
  cursor: ComponentCursor,
  word: number,
  scope: TextScope,
): { type: CoreTypeExpr; ids: (string | undefined)[] } {
  cursor.at = word + 1;
  const ids: (string | undefined)[] = [];
  while (cursor.kind === LEFT) {
    const at = cursor.at;
    cursor.expectOpening("type");
    ids.push(cursor.id());
    cursor.at = at;
    skipForm(cursor);
  }
  cursor.expectClose();
  return { type: parseInScope(cursor, word, scope, `(${slice(cursor, word, cursor.at)}`), ids };
}

/** Parses a field that defines core types; earlier types of the scope have their indices and names. */
function parseInScope(cursor: ComponentCursor, at: number, scope: TextScope, field: string): CoreTypeExpr {
  const names = scope.names("core type");
  const known = scope.count("core type");
  const before = Array.from({ length: known }, (_, index) => {
    const name = names.get(index);
    return `(type ${name === undefined ? "" : `$"${name.replace(/["\\]/g, "\\$&")}"`} ${PLACEHOLDER})`;
  });
  const module = parseAt(cursor, at, `(module ${before.join("")} ${field})`);
  return { kind: "rec", types: module.types.slice(known) };
}

/** Parses the declarations of a module type up to the closing parenthesis. */
export function parseModuleType(cursor: ComponentCursor, scope: TextScope): CoreTypeExpr {
  const start = cursor.at;
  const fields: string[] = [];
  const kinds: ("import" | "export")[] = [];
  const aliases = new Map<number, { count: number; index: number }>();
  let types = 0;
  while (cursor.kind === LEFT) {
    const at = cursor.at;
    if (cursor.isOpening("alias")) {
      const { count, index, id } = parseOuterAlias(cursor, scope);
      aliases.set(types++, { count, index });
      fields.push(`(type ${id} ${PLACEHOLDER})`);
      continue;
    }
    const end = skipForm(cursor);
    const word = cursor.wordAt(at + 1);
    if (word === "type") types++;
    if (word === "rec") types += countTypes(cursor, at + 2, end);
    if (word === "import" || word === "export") kinds.push(word);
    if (word === "export") fields.push(`(import "" ${slice(cursor, at + 2, end)}`);
    else fields.push(slice(cursor, at, end));
  }
  const module = parseAt(cursor, start, `(module ${fields.join("\n")})`);
  const declarations: Omit<ModuleDeclaration, "offset">[] = [];
  for (const { start, count } of module.recGroups) {
    const alias = aliases.get(start);
    declarations.push(
      alias === undefined
        ? { kind: "type", type: { kind: "rec", types: module.types.slice(start, start + count) } } as never
        : { kind: "alias", ...alias } as never,
    );
  }
  module.imports.forEach(({ module: from, name, desc }, i) => {
    declarations.push(
      (kinds[i] === "import" ? { kind: "import", module: from, name, desc } : { kind: "export", name, desc }) as never,
    );
  });
  return { kind: "module", declarations: declarations as ModuleDeclaration[] };
}

/** The number of types of a group between two tokens. */
function countTypes(cursor: ComponentCursor, from: number, end: number): number {
  let count = 0;
  for (let at = from; at < end; at++) {
    if (cursor.kinds[at] === LEFT && cursor.wordAt(at + 1) === "type") count++;
  }
  return count;
}

function parseOuterAlias(cursor: ComponentCursor, scope: TextScope): { count: number; index: number; id: string } {
  cursor.expectOpening("alias", "outer");
  const at = cursor.at;
  let count: number;
  let target: TextScope | undefined = scope;
  const outer = cursor.id();
  if (outer === undefined) count = cursor.u32();
  else {
    const distance = scope.distance(outer);
    if (distance === undefined) cursor.fail(`unknown scope $${outer}`, at);
    count = distance + 1; // The module type is a scope, too.
  }
  for (let left = count - 1; left > 0; left--) target = target?.parent;
  const named = cursor.at;
  const name = cursor.id();
  const index = name === undefined ? cursor.u32() : target?.find("core type", name);
  if (index === undefined) cursor.fail(`unknown core type $${name}`, named);
  cursor.expectOpening("type");
  const id = cursor.kind === ID ? cursor.tokens.wholeText(cursor.at++) : "";
  cursor.expectClose();
  cursor.expectClose();
  return { count, index, id };
}
