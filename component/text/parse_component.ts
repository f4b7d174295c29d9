/**
 * Component text → bytes (Explainer). In: `(component …)` in any of its forms. Out: its binary form.
 *
 * Definitions refer to earlier ones only, so they are emitted as they are read, and the shorthands (inline types,
 * imports, exports and aliases) emit the definitions that they abbreviate. Throws MalformedError with line and column.
 */
import { readTokens } from "@waft/engine/internal/text/lexer";
import { moduleContent } from "@waft/engine/internal/text/parse_module";
import { END, ID, LEFT, NAT, STRING } from "@waft/engine/internal/text/tokens";
import { F32, F64, I32, I64, type ValType as CoreValType } from "@waft/engine/internal/wasm/types";
import { encodeComponent } from "../binary/encode.ts";
import {
  type Canon,
  CANON_ROWS,
  type CanonImmediates,
  type CanonName,
  type CanonOption,
  STRING_ENCODINGS,
} from "../model/canon.ts";
import {
  type Alias,
  type Component,
  COMPONENT_SORTS,
  CORE_SORTS,
  type CoreSort,
  type CustomSection,
  type Declaration,
  type Definition,
  type ExternDesc,
  type NamedSortIndex,
  type Sort,
  type SortIndex,
  type TypeExpr,
  type ValTypeRef,
} from "../model/definitions.ts";
import { type ExternAttributes, type FuncShape, isPrimitive, type Labelled } from "../model/types.ts";
import { ComponentCursor } from "./component_cursor.ts";
import { parseCoreGroup, parseCoreType, parseModuleType } from "./core_type_text.ts";
import { type Emitted, TextScope } from "./text_scope.ts";

const MAX_NESTING = 100;

/** The binary form of a component in text form. `(component binary …)` returns its bytes unchecked. */
export function componentToBinary(text: string | Uint8Array): Uint8Array {
  const cursor = new ComponentCursor(readTokens(text));
  if (!cursor.takeOpening("component")) {
    const bytes = encodeDefinitions(new ComponentParser(cursor).fields(undefined, undefined));
    if (cursor.kind !== END) cursor.unexpectedToken();
    return bytes;
  }
  const bytes = componentContent(cursor);
  if (cursor.kind !== END) cursor.unexpectedToken();
  return bytes;
}

/** Parses the rest of `(component`, including its parenthesis; returns the binary form. */
export function componentContent(cursor: ComponentCursor): Uint8Array {
  const id = cursor.id();
  let bytes: Uint8Array;
  if (cursor.takeWord("binary")) bytes = cursor.strings();
  else if (cursor.takeWord("quote")) bytes = componentToBinary(cursor.strings());
  else bytes = encodeDefinitions(new ComponentParser(cursor).fields(id, undefined));
  cursor.expectClose();
  return bytes;
}

function encodeDefinitions(component: Pick<Component, "definitions" | "customs">): Uint8Array {
  return encodeComponent(component);
}

const CORE_VALUE_TYPES: Readonly<Record<string, CoreValType>> = { i32: I32, i64: I64, f32: F32, f64: F64 };

/** Sorts that an inline definition may have, with the words that begin it. */
const SORT_WORDS: readonly Sort[] = ["func", "type", "component", "instance", "core module"];

class ComponentParser {
  readonly #cursor: ComponentCursor;
  #scope: TextScope;
  #nesting = 0;

  constructor(cursor: ComponentCursor) {
    this.#cursor = cursor;
    this.#scope = new TextScope("component", undefined, undefined);
  }

  /** Parses the fields of a component up to its parenthesis or the end. */
  fields(id: string | undefined, parent: TextScope | undefined): Pick<Component, "definitions" | "customs"> {
    const outer = this.#scope;
    this.#scope = new TextScope("component", id, parent);
    this.#nested(() => {
      while (this.#cursor.kind === LEFT) this.#field();
    });
    for (const entry of this.#scope.inlineExports) this.#emit(entry, entry.sort);
    const { emitted } = this.#scope;
    this.#scope = outer;
    return { definitions: emitted as unknown as Definition[], customs: [] as CustomSection[] };
  }

  #nested<T>(read: () => T): T {
    if (++this.#nesting > MAX_NESTING) {
      this.#cursor.fail(`nesting is too deep: at most ${MAX_NESTING} levels are possible`);
    }
    const value = read();
    this.#nesting--;
    return value;
  }

  #emit(definition: unknown, sort: Sort): number {
    return this.#scope.emit(definition as Emitted, sort);
  }

  #bind(sort: Sort, id: string | undefined, index: number): void {
    if (!this.#scope.bind(sort, id, index)) this.#cursor.fail(`duplicate ${sort} identifier $${id}`);
  }

  #field(): void {
    const cursor = this.#cursor;
    const core = cursor.isOpening("core");
    const word = cursor.wordAt(cursor.at + (core ? 2 : 1));
    const start = cursor.at;
    cursor.at += core ? 3 : 2;
    switch (core ? `core ${word}` : word) {
      case "core module":
        return this.#coreModule();
      case "core instance":
        return this.#coreInstance();
      case "core type":
        return this.#coreType();
      case "core func":
        return this.#coreFunc();
      case "core rec":
        return this.#coreGroup(cursor.at - 1, undefined);
      case "core table":
      case "core memory":
      case "core global":
      case "core tag":
        return this.#coreAlias(`core ${word}` as Sort);
      case "component":
        return this.#component();
      case "instance":
        return this.#instance();
      case "alias":
        return this.#alias();
      case "type":
        return this.#type();
      case "canon":
        return this.#canon();
      case "func":
        return this.#func();
      case "import":
        return this.#import();
      case "export":
        return this.#export();
    }
    cursor.at = start;
    return cursor.unexpectedToken(start + 1);
  }

  // Names, indices and references.

  #index(sort: Sort): number {
    const cursor = this.#cursor;
    if (cursor.kind === NAT) return cursor.u32();
    const at = cursor.at;
    const name = cursor.id();
    if (name === undefined) return cursor.unexpectedToken();
    const index = this.#scope.resolve(sort, name);
    if (index === "not aliasable") return cursor.fail(`outer item \`${name}\` is not a module, type, or component`, at);
    return index ?? cursor.fail(`unknown ${sort}: failed to find name \`$${name}\``, at);
  }

  /** An index, or `(sort index "name"…)`; `prefix` is true where core sorts need the word `core`. */
  #reference(sort: Sort, prefix = true): number {
    const cursor = this.#cursor;
    if (cursor.kind !== LEFT) return this.#index(sort);
    const words = prefix || !sort.startsWith("core ") ? sort.split(" ") : [sort.slice("core ".length)];
    cursor.expectOpening(...words);
    return this.#restOfReference(sort);
  }

  /** The rest of `(sort`: an index, or an instance and the names of exports. */
  #restOfReference(sort: Sort): number {
    const cursor = this.#cursor;
    const names = cursor.kinds[cursor.at + 1] === STRING;
    if (!names) {
      const index = this.#index(sort);
      cursor.expectClose();
      return index;
    }
    const isCore = sort.startsWith("core ") && sort !== "core module";
    let index = this.#index(isCore ? "core instance" : "instance");
    while (cursor.kind === STRING) {
      const name = cursor.name();
      const last = cursor.kind !== STRING;
      const target = last ? sort : isCore ? "core instance" : "instance";
      const alias = { kind: isCore ? "core export" : "export", sort: target, instance: index, name };
      index = this.#emit({ kind: "alias", alias }, target);
    }
    cursor.expectClose();
    return index;
  }

  /** `(sort index…)` of any sort. */
  #anyReference(): SortIndex {
    const cursor = this.#cursor;
    const start = cursor.at;
    if (cursor.kind !== LEFT) cursor.unexpectedToken();
    cursor.at++;
    const core = cursor.takeWord("core");
    const word = cursor.word();
    const known = core ? Object.hasOwn(CORE_SORTS, word) : Object.hasOwn(COMPONENT_SORTS, word);
    if (!known) cursor.unexpectedToken(start + (core ? 2 : 1));
    const sort = (core ? `core ${word}` : word) as Sort;
    return { sort, index: this.#restOfReference(sort) };
  }

  #attributes(): ExternAttributes | undefined {
    const cursor = this.#cursor;
    const found: { implements?: string; versionSuffix?: string; externalId?: string } = {};
    const keys = { "implements": "implements", "external-id": "externalId", "versionsuffix": "versionSuffix" } as const;
    while (cursor.isAttribute(cursor.at)) {
      const key = keys[cursor.wordAt(cursor.at + 1) as keyof typeof keys];
      if (found[key] !== undefined) cursor.fail(`unexpected token: a second ${cursor.wordAt(cursor.at + 1)}`);
      cursor.at += 2;
      found[key] = cursor.name();
      cursor.expectClose();
    }
    return Object.keys(found).length === 0 ? undefined : found;
  }

  #externName(): { name: string; attributes?: ExternAttributes } {
    const name = this.#cursor.name();
    const attributes = this.#attributes();
    return attributes === undefined ? { name } : { name, attributes };
  }

  /** The inline exports `(export "x")` of a definition. */
  #inlineExports(): { name: string; attributes?: ExternAttributes }[] {
    const cursor = this.#cursor;
    const exports: { name: string; attributes?: ExternAttributes }[] = [];
    while (cursor.isInline("export")) {
      const start = cursor.at;
      cursor.at += 2;
      const name = this.#externName();
      if (!cursor.takeClose()) {
        cursor.at = start;
        return exports;
      }
      exports.push(name);
    }
    return exports;
  }

  /** Inline exports follow the fields of their component. */
  #emitExports(exports: readonly { name: string; attributes?: ExternAttributes }[], sort: Sort, index: number): void {
    for (const name of exports) this.#scope.inlineExports.push({ kind: "export", ...name, sort, index });
  }

  /** The inline import `(import "x")` of a definition. */
  #inlineImport(): { name: string; attributes?: ExternAttributes } | undefined {
    const cursor = this.#cursor;
    if (!cursor.isInline("import")) return undefined;
    const start = cursor.at;
    cursor.at += 2;
    const name = this.#externName();
    if (cursor.takeClose()) return name;
    cursor.at = start; // The import of a nested component.
    return undefined;
  }

  /** Binds, exports and closes a definition that has been emitted. */
  #finish(sort: Sort, id: string | undefined, index: number, exports: readonly { name: string }[]): void {
    this.#bind(sort, id, index);
    this.#emitExports(exports, sort, index);
    this.#cursor.expectClose();
  }

  /** The inline form `(alias …)` of a definition, if it follows. */
  #inlineAlias(sort: Sort): number | undefined {
    const cursor = this.#cursor;
    if (cursor.takeOpening("alias")) {
      const index = this.#aliasTarget(sort);
      cursor.expectClose();
      return index;
    }
    return undefined;
  }

  #aliasTarget(sort: Sort | undefined): number {
    const cursor = this.#cursor;
    if (cursor.takeWord("outer")) {
      const { count, index, at } = this.#outerTarget();
      const named = sort ?? this.#aliasSort();
      const resolved = typeof index === "number" ? index : this.#outerIndex(count, named, index, at);
      return this.#emitAlias({ kind: "outer", sort: named, count, index: resolved }, named, sort === undefined);
    }
    const core = cursor.takeWord("core");
    if (!cursor.takeWord("export")) cursor.unexpectedToken();
    const instance = this.#index(core ? "core instance" : "instance");
    const name = cursor.name();
    const named = sort ?? this.#aliasSort();
    const alias = { kind: core ? "core export" : "export", sort: named, instance, name } as Alias;
    return this.#emitAlias(alias, named, sort === undefined);
  }

  #emitAlias(alias: Alias, sort: Sort, closes: boolean): number {
    const cursor = this.#cursor;
    const id = closes ? cursor.id() : undefined;
    const index = this.#emit({ kind: "alias", alias }, sort);
    if (closes) {
      this.#bind(sort, id, index);
      cursor.expectClose();
    }
    return index;
  }

  /** The sort in `(sort $id?)`, up to the identifier. */
  #aliasSort(): Sort {
    const cursor = this.#cursor;
    if (cursor.kind !== LEFT) cursor.unexpectedToken();
    cursor.at++;
    const core = cursor.takeWord("core");
    const at = cursor.at;
    const word = cursor.word();
    if (!(core ? Object.hasOwn(CORE_SORTS, word) : Object.hasOwn(COMPONENT_SORTS, word))) cursor.unexpectedToken(at);
    return (core ? `core ${word}` : word) as Sort;
  }

  #outerTarget(): { count: number; index: number | string; at: number } {
    const cursor = this.#cursor;
    const at = cursor.at;
    const id = cursor.id();
    const distance = id === undefined ? cursor.u32() : this.#scope.distance(id);
    const count = distance ?? cursor.fail(`outer component $${id} is not found`, at);
    const named = cursor.at;
    return { count, index: cursor.id() ?? cursor.u32(), at: named };
  }

  #outerIndex(count: number, sort: Sort, name: string, at: number): number {
    let scope: TextScope | undefined = this.#scope;
    for (let left = count; left > 0; left--) scope = scope?.parent;
    return scope?.find(sort, name) ?? this.#cursor.fail(`unknown ${sort}: failed to find name \`$${name}\``, at);
  }

  #alias(): void {
    this.#aliasTarget(undefined);
    this.#cursor.expectClose();
  }

  // Core definitions.

  #coreModule(): void {
    const cursor = this.#cursor;
    const id = cursor.id();
    const exports = this.#inlineExports();
    const imported = this.#inlineImport();
    const sort = "core module";
    let index: number | undefined;
    if (imported !== undefined) {
      const type: ExternDesc = { kind: "module", type: this.#moduleType() };
      index = this.#emit({ kind: "import", ...imported, type }, sort);
    } else index = this.#inlineAlias(sort);
    if (index !== undefined) return this.#finish(sort, id, index, exports);
    const bytes = moduleContent(cursor, -1);
    const module = this.#emit({ kind: "core module", bytes }, sort);
    this.#bind(sort, id, module);
    this.#emitExports(exports, sort, module);
  }

  /** A module type by reference or inline, up to the parenthesis around it. */
  #moduleType(): number {
    const cursor = this.#cursor;
    if (cursor.takeOpening("type")) {
      const index = this.#index("core type");
      cursor.expectClose();
      return index;
    }
    return this.#emit({ kind: "core type", type: parseModuleType(cursor, this.#scope) }, "core type");
  }

  #coreType(): void {
    const cursor = this.#cursor;
    const id = cursor.id();
    let index: number;
    if (cursor.takeOpening("module")) {
      const type = parseModuleType(cursor, this.#scope);
      index = this.#emit({ kind: "core type", type }, "core type");
      cursor.expectClose();
    } else if (cursor.isOpening("rec")) {
      this.#coreGroup(cursor.at + 1, id);
      return cursor.expectClose();
    } else {
      const aliased = this.#inlineAlias("core type");
      index = aliased ?? this.#emit({ kind: "core type", type: parseCoreType(cursor, this.#scope) }, "core type");
    }
    this.#finish("core type", id, index, []);
  }

  /** A recursive group whose word `rec` is token `word`, up to its parenthesis; `id` names its first type. */
  #coreGroup(word: number, id: string | undefined): void {
    const { type, ids } = parseCoreGroup(this.#cursor, word, this.#scope);
    const first = this.#emit({ kind: "core type", type }, "core type");
    for (let k = 1; k < ids.length; k++) this.#scope.skip("core type");
    this.#bind("core type", id, first);
    ids.forEach((name, k) => this.#bind("core type", name, first + k));
  }

  #coreFunc(): void {
    const cursor = this.#cursor;
    const id = cursor.id();
    const aliased = this.#inlineAlias("core func");
    if (aliased !== undefined) return this.#finish("core func", id, aliased, []);
    cursor.expectOpening("canon");
    const name = this.#canonName();
    const canon = this.#canonBody(name);
    cursor.expectClose();
    this.#finish("core func", id, this.#emit({ kind: "canon", canon }, "core func"), []);
  }

  #coreAlias(sort: Sort): void {
    const id = this.#cursor.id();
    const index = this.#inlineAlias(sort) ?? this.#cursor.unexpectedToken();
    this.#finish(sort, id, index, []);
  }

  #coreInstance(): void {
    const cursor = this.#cursor;
    const id = cursor.id();
    let index: number;
    if (cursor.takeOpening("instantiate")) {
      const module = this.#reference("core module", false);
      const args: { name: string; instance: number }[] = [];
      while (cursor.takeOpening("with")) {
        const name = cursor.name();
        args.push({ name, instance: this.#coreArgument() });
        cursor.expectClose();
      }
      cursor.expectClose();
      index = this.#emit({ kind: "core instance", expr: { kind: "instantiate", module, args } }, "core instance");
    } else index = this.#coreExports();
    this.#finish("core instance", id, index, []);
  }

  #coreArgument(): number {
    const cursor = this.#cursor;
    cursor.expectOpening("instance");
    if (cursor.kind === ID || cursor.kind === NAT) return this.#restOfReference("core instance");
    const index = this.#coreExports();
    cursor.expectClose();
    return index;
  }

  /** `(export "n" (sort index))…` of core sorts without the word `core`. */
  #coreExports(): number {
    const cursor = this.#cursor;
    const exports: { name: string; sort: CoreSort; index: number }[] = [];
    while (cursor.takeOpening("export")) {
      const name = cursor.name();
      if (cursor.kind !== LEFT) cursor.unexpectedToken();
      const word = cursor.wordAt(cursor.at + 1) ?? "";
      if (!Object.hasOwn(CORE_SORTS, word)) cursor.unexpectedToken(cursor.at + 1);
      const sort = word as CoreSort;
      exports.push({ name, sort, index: this.#reference(`core ${sort}`, false) });
      cursor.expectClose();
    }
    return this.#emit({ kind: "core instance", expr: { kind: "exports", exports } }, "core instance");
  }

  // Components and instances.

  #component(): void {
    const cursor = this.#cursor;
    const id = cursor.id();
    const exports = this.#inlineExports();
    const imported = this.#inlineImport();
    if (imported !== undefined) {
      const type: ExternDesc = { kind: "component", type: this.#componentTypeUse() };
      return this.#finish("component", id, this.#emit({ kind: "import", ...imported, type }, "component"), exports);
    }
    const aliased = cursor.isOpening("alias", "export") ? this.#inlineAlias("component") : undefined;
    if (aliased !== undefined) return this.#finish("component", id, aliased, exports);
    const component = this.fields(id, this.#scope);
    this.#finish("component", id, this.#emit({ kind: "component", component }, "component"), exports);
  }

  #instance(): void {
    const cursor = this.#cursor;
    const id = cursor.id();
    const exports = this.#inlineExports();
    const imported = this.#inlineImport();
    let index: number | undefined;
    if (imported !== undefined) {
      const type: ExternDesc = { kind: "instance", type: this.#instanceTypeUse() };
      index = this.#emit({ kind: "import", ...imported, type }, "instance");
    } else if (cursor.takeOpening("instantiate")) {
      const component = this.#reference("component");
      const args: NamedSortIndex[] = [];
      while (cursor.takeOpening("with")) {
        const name = cursor.name();
        args.push({ name, ...this.#argument() });
        cursor.expectClose();
      }
      cursor.expectClose();
      index = this.#emit({ kind: "instance", expr: { kind: "instantiate", component, args } }, "instance");
    } else index = this.#inlineAlias("instance") ?? this.#exportsInstance();
    this.#finish("instance", id, index, exports);
  }

  #argument(): SortIndex {
    const cursor = this.#cursor;
    const inline = cursor.isOpening("instance") && cursor.kinds[cursor.at + 2] !== ID &&
      cursor.kinds[cursor.at + 2] !== NAT;
    if (!inline) return this.#anyReference();
    cursor.at += 2;
    const index = this.#exportsInstance();
    cursor.expectClose();
    return { sort: "instance", index };
  }

  #exportsInstance(): number {
    const cursor = this.#cursor;
    const exports: NamedSortIndex[] = [];
    while (cursor.takeOpening("export")) {
      const name = this.#externName();
      exports.push({ ...name, ...this.#anyReference() });
      cursor.expectClose();
    }
    return this.#emit({ kind: "instance", expr: { kind: "exports", exports } }, "instance");
  }

  // Types.

  #type(): void {
    const cursor = this.#cursor;
    const id = cursor.id();
    const exports = this.#inlineExports();
    const imported = this.#inlineImport();
    let index: number | undefined;
    if (imported !== undefined) {
      index = this.#emit({ kind: "import", ...imported, type: this.#typeBound() }, "type");
    } else index = this.#inlineAlias("type") ?? this.#emitType(id);
    this.#finish("type", id, index, exports);
  }

  /** Parses a type definition and emits it. */
  #emitType(id: string | undefined): number {
    const type = this.#typeExpr(id);
    return this.#emit({ kind: "type", type }, "type");
  }

  #typeExpr(id: string | undefined): TypeExpr {
    const cursor = this.#cursor;
    if (cursor.kind !== LEFT) {
      const at = cursor.at;
      const word = cursor.word();
      if (!isPrimitive(word)) return cursor.unexpectedToken(at);
      return { kind: word };
    }
    const start = cursor.at;
    cursor.at++;
    const word = cursor.word();
    const type = this.#nested(() => this.#typeConstructor(word, id, start));
    cursor.expectClose();
    return type;
  }

  #typeConstructor(word: string, id: string | undefined, start: number): TypeExpr {
    const cursor = this.#cursor;
    switch (word) {
      case "func":
        return this.#signature();
      case "component":
        return { kind: "component", declarations: this.#declarations(id) };
      case "instance":
        return { kind: "instance", declarations: this.#declarations(id) };
      case "resource":
        return this.#resource();
      case "record":
        return { kind: "record", fields: this.#labelled("field") };
      case "variant":
        return this.#variant();
      case "list": {
        const element = this.#valType();
        return cursor.kind === NAT ? { kind: "list", element, length: cursor.u32() } : { kind: "list", element };
      }
      case "tuple": {
        const types: ValTypeRef[] = [];
        while (!this.#atClose()) types.push(this.#valType());
        return { kind: "tuple", types };
      }
      case "flags":
      case "enum": {
        const names: string[] = [];
        while (cursor.kind === STRING) names.push(cursor.name());
        return { kind: word, names };
      }
      case "option":
        return { kind: "option", type: this.#valType() };
      case "result":
        return this.#resultType();
      case "map":
        return { kind: "map", key: this.#valType(), value: this.#valType() };
      case "own":
      case "borrow":
        return { kind: word, resource: this.#reference("type") };
      case "stream":
      case "future":
        return this.#atClose() ? { kind: word } : { kind: word, element: this.#valType() };
    }
    return cursor.unexpectedToken(start + 1);
  }

  #atClose(): boolean {
    const cursor = this.#cursor;
    return cursor.kind !== LEFT && cursor.kind !== ID && cursor.kind !== NAT && cursor.wordAt(cursor.at) === undefined;
  }

  #labelled(word: string): Labelled<ValTypeRef>[] {
    const cursor = this.#cursor;
    const rows: Labelled<ValTypeRef>[] = [];
    while (cursor.takeOpening(word)) {
      rows.push({ name: cursor.name(), type: this.#valType() });
      cursor.expectClose();
    }
    return rows;
  }

  #variant(): TypeExpr {
    const cursor = this.#cursor;
    const cases: { name: string; type?: ValTypeRef }[] = [];
    const ids = new Set<string>();
    while (cursor.takeOpening("case")) {
      const at = cursor.at;
      const id = cursor.id();
      if (id !== undefined && ids.has(id)) cursor.fail(`duplicate case identifier $${id}`, at);
      if (id !== undefined) ids.add(id);
      const name = cursor.name();
      cases.push(this.#atClose() ? { name } : { name, type: this.#valType() });
      cursor.expectClose();
    }
    return { kind: "variant", cases };
  }

  #resultType(): TypeExpr {
    const cursor = this.#cursor;
    const ok = this.#atClose() || cursor.isOpening("error") ? undefined : this.#valType();
    let err: ValTypeRef | undefined;
    if (cursor.takeOpening("error")) {
      err = this.#valType();
      cursor.expectClose();
    }
    return { kind: "result", ...(ok === undefined ? {} : { ok }), ...(err === undefined ? {} : { err }) };
  }

  #resource(): TypeExpr {
    const cursor = this.#cursor;
    cursor.expectOpening("rep");
    const rep = this.#coreValType();
    cursor.expectClose();
    if (!cursor.takeOpening("dtor")) return { kind: "resource", rep };
    const dtor = this.#reference("core func");
    cursor.expectClose();
    return { kind: "resource", rep, dtor };
  }

  #coreValType(): CoreValType {
    const { at, kind } = this.#cursor;
    if (kind === NAT) this.#cursor.fail("unexpected token, an older form of a slot: write its type first, `i32 0`");
    return CORE_VALUE_TYPES[this.#cursor.word()] ?? this.#cursor.unexpectedToken(at);
  }

  /** A value type: a primitive, a reference, or an inline type, which is emitted. */
  #valType(): ValTypeRef {
    const cursor = this.#cursor;
    const word = cursor.wordAt(cursor.at);
    if (word !== undefined && isPrimitive(word)) {
      cursor.at++;
      return word;
    }
    if (cursor.kind !== LEFT) return this.#index("type");
    if (cursor.isOpening("type")) return this.#reference("type");
    return this.#emitType(undefined);
  }

  #signature(): FuncShape<ValTypeRef> {
    const cursor = this.#cursor;
    const async = cursor.takeWord("async");
    const params = this.#labelled("param");
    if (!cursor.takeOpening("result")) return { kind: "func", async, params };
    const result = this.#valType();
    cursor.expectClose();
    return { kind: "func", async, params, result };
  }

  /** `(type index)`, or an inline type that `emit` describes. */
  #typeUse(expression: () => TypeExpr): number {
    const cursor = this.#cursor;
    if (cursor.isOpening("type") && cursor.wordAt(cursor.at + 2) === undefined && this.#isTypeUse()) {
      return this.#reference("type");
    }
    const type = this.#nested(expression);
    return this.#emit({ kind: "type", type }, "type");
  }

  /** Whether `(type` begins a reference: an index or name, and optionally names of exports, before the parenthesis. */
  #isTypeUse(): boolean {
    const { kinds, at } = this.#cursor;
    if (kinds[at + 2] !== ID && kinds[at + 2] !== NAT) return false;
    let end = at + 3;
    while (kinds[end] === STRING) end++;
    return kinds[end] !== LEFT && this.#cursor.wordAt(end) === undefined;
  }

  #funcTypeUse(): number {
    return this.#typeUse(() => this.#signature());
  }

  #instanceTypeUse(): number {
    return this.#typeUse(() => ({ kind: "instance", declarations: this.#declarations(undefined) }));
  }

  #componentTypeUse(): number {
    return this.#typeUse(() => ({ kind: "component", declarations: this.#declarations(undefined) }));
  }

  /** Declarations of a component or instance type, up to its parenthesis. */
  #declarations(id: string | undefined): Declaration[] {
    const cursor = this.#cursor;
    const outer = this.#scope;
    this.#scope = new TextScope("type", id, outer);
    while (cursor.kind === LEFT) {
      const start = cursor.at;
      if (cursor.takeOpening("core", "type")) this.#coreType();
      else if (cursor.takeOpening("core", "rec")) this.#coreGroup(cursor.at - 1, undefined);
      else if (cursor.takeOpening("type")) this.#type();
      else if (cursor.takeOpening("alias")) this.#alias();
      else if (cursor.takeOpening("import")) this.#import();
      else if (cursor.takeOpening("export")) this.#exportDeclaration();
      else cursor.unexpectedToken(start + 1);
    }
    const { emitted, inlineExports } = this.#scope;
    if (inlineExports.length > 0) cursor.fail(`unexpected token: an inline export in a type: ${inlineExports[0].name}`);
    this.#scope = outer;
    return emitted as unknown as Declaration[];
  }

  #exportDeclaration(): void {
    const id = this.#cursor.id();
    const name = this.#externName();
    this.#extern("export", name, id);
    this.#cursor.expectClose();
  }

  #import(): void {
    const name = this.#externName();
    this.#extern("import", name, undefined);
    this.#cursor.expectClose();
  }

  /** The type of an import or declared export, which may bind an identifier. */
  #extern(kind: "import" | "export", name: { name: string }, given: string | undefined): void {
    const { sort, id, type } = this.#externType();
    const index = this.#emit({ kind, ...name, type }, sort);
    this.#bind(sort, id ?? given, index);
  }

  /** `(sort $id? type)`. */
  #externType(): { sort: Sort; id: string | undefined; type: ExternDesc } {
    const cursor = this.#cursor;
    for (const sort of SORT_WORDS) {
      if (!cursor.takeOpening(...sort.split(" "))) continue;
      const id = cursor.id();
      const type = this.#externDesc(sort);
      cursor.expectClose();
      return { sort, id, type };
    }
    if (cursor.isOpening("value")) cursor.fail("values are not supported: they are an unfinished feature");
    return cursor.unexpectedToken(cursor.kind === LEFT ? cursor.at + 1 : cursor.at);
  }

  #externDesc(sort: Sort): ExternDesc {
    switch (sort) {
      case "func":
        return { kind: "func", type: this.#funcTypeUse() };
      case "instance":
        return { kind: "instance", type: this.#instanceTypeUse() };
      case "component":
        return { kind: "component", type: this.#componentTypeUse() };
      case "core module":
        return { kind: "module", type: this.#moduleType() };
      default:
        return this.#typeBound();
    }
  }

  #typeBound(): ExternDesc {
    const cursor = this.#cursor;
    if (cursor.takeOpening("sub")) {
      if (!cursor.takeWord("resource")) cursor.unexpectedToken();
      cursor.expectClose();
      return { kind: "type" };
    }
    cursor.expectOpening("eq");
    const eq = cursor.kind === LEFT && !cursor.isOpening("type") ? this.#emitType(undefined) : this.#eqTarget();
    cursor.expectClose();
    return { kind: "type", eq };
  }

  #eqTarget(): number {
    const cursor = this.#cursor;
    const word = cursor.wordAt(cursor.at);
    return word === undefined ? this.#reference("type") : this.#emitType(undefined);
  }

  #export(): void {
    const cursor = this.#cursor;
    const id = cursor.id();
    const name = this.#externName();
    const target = this.#anyReference();
    const type = cursor.kind === LEFT ? this.#ascription() : undefined;
    const index = this.#emit(
      { kind: "export", ...name, ...target, ...(type === undefined ? {} : { type }) },
      target.sort,
    );
    this.#bind(target.sort, id, index);
    cursor.expectClose();
  }

  #ascription(): ExternDesc {
    return this.#externType().type;
  }

  // Functions and canonical definitions.

  #func(): void {
    const cursor = this.#cursor;
    const id = cursor.id();
    const exports = this.#inlineExports();
    const imported = this.#inlineImport();
    if (imported !== undefined) {
      const type: ExternDesc = { kind: "func", type: this.#funcTypeUse() };
      return this.#finish("func", id, this.#emit({ kind: "import", ...imported, type }, "func"), exports);
    }
    const aliased = this.#inlineAlias("func");
    if (aliased !== undefined) return this.#finish("func", id, aliased, exports);
    const type = this.#funcTypeUse();
    cursor.expectOpening("canon", "lift");
    const func = this.#reference("core func");
    const options = this.#options();
    cursor.expectClose();
    const canon = { name: "lift", func, options, type };
    this.#finish("func", id, this.#emit({ kind: "canon", canon }, "func"), exports);
  }

  #canonName(): CanonName {
    const at = this.#cursor.at;
    const name = this.#cursor.word();
    return Object.hasOwn(CANON_ROWS, name) ? name as CanonName : this.#cursor.unexpectedToken(at);
  }

  #canon(): void {
    const cursor = this.#cursor;
    const name = this.#canonName();
    if (name === "lift") {
      const func = this.#reference("core func");
      const options = this.#options();
      cursor.expectOpening("func");
      const id = cursor.id();
      const type = this.#funcTypeUse();
      cursor.expectClose();
      return this.#finish("func", id, this.#emit({ kind: "canon", canon: { name, func, options, type } }, "func"), []);
    }
    const canon = this.#canonBody(name);
    cursor.expectOpening("core", "func");
    const id = cursor.id();
    cursor.expectClose();
    this.#finish("core func", id, this.#emit({ kind: "canon", canon }, "core func"), []);
  }

  /** The immediates of a definition other than `lift`, in the order of the text. */
  #canonBody(name: CanonName): Canon {
    const canon: Record<string, unknown> = { name };
    for (const immediate of CANON_ROWS[name][1]) canon[immediate] = this.#immediate(name, immediate);
    return canon as unknown as Canon;
  }

  #immediate(name: CanonName, immediate: keyof CanonImmediates): unknown {
    const cursor = this.#cursor;
    switch (immediate) {
      case "type":
        return this.#valTypeIndex();
      case "func":
        return this.#reference(name === "lower" ? "func" : "core func");
      case "options":
        return this.#options();
      case "result": {
        if (!cursor.takeOpening("result")) return undefined;
        const result = this.#valType();
        cursor.expectClose();
        return result;
      }
      case "async":
        return cursor.takeWord("async");
      case "cancellable":
        return cursor.takeWord("cancellable");
      case "memory": {
        cursor.expectOpening("memory");
        const index = this.#memoryIndex();
        cursor.expectClose();
        return index;
      }
      case "slotType":
        return this.#coreValType();
      case "slot":
        return cursor.u32();
      case "coreType":
        return this.#reference("core type");
      case "table":
        return this.#reference("core table");
      case "shared":
        return cursor.takeWord("shared");
    }
  }

  /** The index of a type, which may be inline. */
  #valTypeIndex(): number {
    const cursor = this.#cursor;
    if (cursor.kind !== LEFT || cursor.isOpening("type")) return this.#reference("type");
    return this.#emitType(undefined);
  }

  #memoryIndex(): number {
    this.#refuseOlderIndex("memory");
    return this.#reference("core memory");
  }

  /** Refuses the older forms `$instance "name"` and `(func $instance "name")` of an index in a canonical option. */
  #refuseOlderIndex(sort: "memory" | "func"): void {
    const cursor = this.#cursor;
    const isBare = cursor.kind === ID || cursor.kind === NAT;
    if (isBare ? cursor.kinds[cursor.at + 1] !== STRING : !cursor.isOpening(sort)) return;
    const form = `(core ${sort} $instance "name")`;
    cursor.fail(`unexpected token, an older form of an index: write \`${form}\``, isBare ? cursor.at : cursor.at + 1);
  }

  #options(): CanonOption[] {
    const cursor = this.#cursor;
    const options: CanonOption[] = [];
    for (;;) {
      const word = cursor.wordAt(cursor.at);
      if (word === "async") options.push({ kind: "async" });
      else if (word?.startsWith("string-encoding=")) {
        const encoding = STRING_ENCODINGS.find((name) => word === `string-encoding=${name}`);
        options.push({ kind: "string-encoding", encoding: encoding ?? cursor.unexpectedToken() });
      } else if (!this.#indexedOption(options)) return options;
      else continue;
      cursor.at++;
    }
  }

  #indexedOption(options: CanonOption[]): boolean {
    const cursor = this.#cursor;
    for (const kind of ["memory", "realloc", "post-return", "callback"] as const) {
      if (!cursor.takeOpening(kind)) continue;
      if (kind !== "memory") this.#refuseOlderIndex("func");
      options.push({ kind, index: kind === "memory" ? this.#memoryIndex() : this.#reference("core func") });
      cursor.expectClose();
      return true;
    }
    return false;
  }
}
