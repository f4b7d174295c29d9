/**
 * The first pass over a module's fields: binds every identifier of every index space, so that the second pass
 * (parse_fields.ts) can resolve forward references, and checks the order of imports (specification, 6.6.13).
 *
 * Establishes: scopes hold all names with their final indices; each listed field is balanced. Of a field only its
 * binders, inline imports and inline segments are read.
 */
import type { ExternKind } from "../wasm/module.ts";
import { K } from "./keywords.ts";
import type { ModuleContext } from "./module_context.ts";
import type { Scope } from "./scopes.ts";
import { NO_SYMBOL } from "./symbols.ts";
import { TokenCursor } from "./token_cursor.ts";
import { ANNOTATION, END, ERROR, ID, LEFT, RIGHT } from "./tokens.ts";

/** Starts of fields: tokens of their parentheses; types are separate because they are parsed first. */
interface FieldTokens {
  types: number[];
  others: number[];
}

/** External kinds by keyword. */
export const KIND_BY_KEYWORD: ReadonlyMap<number, ExternKind> = new Map([
  [K.func, "func"],
  [K.table, "table"],
  [K.memory, "memory"],
  [K.global, "global"],
  [K.tag, "tag"],
]);

/** The index space of an external kind. */
export function scopeOf(context: ModuleContext, kind: ExternKind): Scope {
  switch (kind) {
    case "func":
      return context.funcs;
    case "table":
      return context.tables;
    case "memory":
      return context.memories;
    case "global":
      return context.globals;
    case "tag":
      return context.tags;
  }
}

/** The name map of an external kind. */
function namesOf(context: ModuleContext, kind: ExternKind): Map<number, string> {
  const names = context.names;
  switch (kind) {
    case "func":
      return names.funcs;
    case "table":
      return names.tables;
    case "memory":
      return names.memories;
    case "global":
      return names.globals;
    case "tag":
      return names.tags;
  }
}

/** Scans fields up to a token that begins none, and leaves the cursor there. */
export function scanFields(context: ModuleContext): FieldTokens {
  const cursor = context.cursor;
  const fields: FieldTokens = { types: [], others: [] };
  let defined: ExternKind | undefined;
  for (;;) {
    const token = cursor.at;
    if (cursor.kind === ANNOTATION) {
      fields.others.push(token);
      cursor.at++;
      cursor.skipToClose();
      continue;
    }
    const keyword = cursor.openKeyword();
    if (keyword < 0 || !FIELD_KEYWORDS.has(keyword)) return fields;
    cursor.at += 2;
    (keyword === K.type || keyword === K.rec ? fields.types : fields.others).push(token);
    const kind = KIND_BY_KEYWORD.get(keyword);
    if (keyword === K.import) {
      if (defined !== undefined) cursor.fail(`import after ${scopeOf(context, defined).noun}`, token);
      scanImport(context);
    } else if (kind !== undefined) {
      context.bind(scopeOf(context, kind), namesOf(context, kind));
      while (cursor.takeOpen(K.export)) cursor.skipToClose();
      if (!cursor.isOpen(K.import)) defined = kind;
      else if (defined !== undefined) cursor.fail(`import after ${scopeOf(context, defined).noun}`);
      if (kind === "table") scanInlineSegment(context, K.elem, context.elems);
      else if (kind === "memory") scanInlineSegment(context, K.data, context.datas);
    } else if (keyword === K.type) {
      context.bind(context.types, context.names.types);
    } else if (keyword === K.rec) {
      scanRec(context);
    } else if (keyword === K.elem) {
      context.bind(context.elems, context.names.elems);
    } else if (keyword === K.data) {
      context.bind(context.datas, context.names.datas);
    }
    cursor.skipToClose();
  }
}

const FIELD_KEYWORDS: ReadonlySet<number> = new Set([
  ...KIND_BY_KEYWORD.keys(),
  K.type,
  K.rec,
  K.import,
  K.export,
  K.start,
  K.elem,
  K.data,
]);

/** True at a module field. */
export function isField(cursor: TokenCursor): boolean {
  return cursor.kind === ANNOTATION || FIELD_KEYWORDS.has(cursor.openKeyword());
}

/** Skips module fields. */
export function skipFields(cursor: TokenCursor): void {
  while (isField(cursor)) {
    cursor.at++;
    cursor.skipToClose();
  }
}

/**
 * `(import "module" "name" (kind $id …))`, or a group: `(item "name" (kind $id …))…`, or `(item "name")… (kind …)`.
 * Binds the identifiers.
 */
function scanImport(context: ModuleContext): void {
  const cursor = context.cursor;
  cursor.string();
  if (!cursor.isOpen(K.item)) {
    cursor.string();
    scanExternType(context);
    return;
  }
  const names = startsNames(cursor);
  let count = 0;
  for (; cursor.takeOpen(K.item); count++) {
    cursor.string();
    if (!names) scanExternType(context);
    cursor.expectClose();
  }
  if (names) scanSharedType(context, count);
}

/** True at the first item of a group whose items have no types of their own. */
function startsNames(cursor: TokenCursor): boolean {
  const ahead = new TokenCursor(cursor.tokens, cursor.at + 2);
  ahead.string();
  return ahead.kind === RIGHT;
}

function scanExternType(context: ModuleContext): void {
  const kind = takeKind(context.cursor);
  context.bind(scopeOf(context, kind), namesOf(context, kind));
  context.cursor.skipToClose();
}

/** The type of a group of `count` imports, which has no identifier. */
function scanSharedType(context: ModuleContext, count: number): void {
  const { cursor } = context;
  const kind = takeKind(cursor);
  if (cursor.kind === ID) cursor.fail("identifier not allowed: the imports of a group share this type");
  for (; count > 0; count--) scopeOf(context, kind).declare(NO_SYMBOL);
  cursor.skipToClose();
}

/** Takes a parenthesis and the keyword of an external kind. */
function takeKind(cursor: TokenCursor): ExternKind {
  const kind = KIND_BY_KEYWORD.get(cursor.openKeyword());
  if (kind === undefined) return cursor.unexpected(cursor.kind === LEFT ? cursor.at + 1 : cursor.at);
  cursor.at += 2;
  return kind;
}

function scanRec(context: ModuleContext): void {
  const cursor = context.cursor;
  while (cursor.takeOpen(K.type)) {
    context.bind(context.types, context.names.types);
    cursor.skipToClose();
  }
}

/** A table or memory with inline content defines an unnamed segment. Leaves the cursor where it was. */
function scanInlineSegment(context: ModuleContext, keyword: number, scope: Scope): void {
  const cursor = context.cursor;
  const start = cursor.at;
  while (cursor.kind !== RIGHT && cursor.kind !== END && cursor.kind !== ERROR) {
    if (cursor.isOpen(keyword)) scope.declare(NO_SYMBOL);
    const nested = cursor.kind === LEFT || cursor.kind === ANNOTATION;
    cursor.at++;
    if (nested) cursor.skipToClose();
  }
  cursor.at = start;
}
