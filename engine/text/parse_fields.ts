/**
 * The second pass: parses each field of a module, with its abbreviations (specification, 6.6), into the module of the
 * context.
 *
 * Relies on scan_fields.ts: all identifiers are bound and every type definition is parsed. Expressions are made in
 * binary form with offset 0; parse_module.ts sets their offsets.
 */
import { ByteWriter } from "../base/bytes.ts";
import { writeRefFunc } from "../binary/encode.ts";
import { writeValType } from "../binary/types.ts";
import { CONSTANT } from "../wasm/constant_reader.ts";
import type { ElementSegment, ExternKind, ImportDesc, RawBytes } from "../wasm/module.ts";
import { FUNCREF, HEAP, I32, type I64, PAGE_BYTES, refType, type ValType } from "../wasm/types.ts";
import { parseCustomAnnotation } from "./custom_annotations.ts";
import { K } from "./keywords.ts";
import type { ModuleContext } from "./module_context.ts";
import type { CodeParser } from "./parse_code.ts";
import {
  isRefType,
  parseAddressType,
  parseGlobalType,
  parseMemoryType,
  parsePageSize,
  parseRefType,
  parseTableType,
  parseTypeGroups,
  parseTypeUse,
} from "./parse_types.ts";
import { KIND_BY_KEYWORD, scopeOf } from "./scan_fields.ts";
import type { PlacedField } from "./text_places.ts";
import { ANNOTATION, LEFT, NAT, RIGHT } from "./tokens.ts";

const FUNC_NON_NULL = refType(false, HEAP.func);

function raw(bytes: Uint8Array): RawBytes {
  return { bytes, offset: 0 };
}

/** Parses the fields of one module. Counters hold the index of the next definition of each kind. */
export class FieldParser {
  readonly #context: ModuleContext;
  readonly #code: CodeParser;
  readonly #next: Record<ExternKind, number> = { func: 0, table: 0, memory: 0, global: 0, tag: 0 };
  readonly #locals: ByteWriter = new ByteWriter(64);
  /** The first token of the field being parsed. */
  #token = 0;

  constructor(context: ModuleContext, code: CodeParser) {
    this.#context = context;
    this.#code = code;
  }

  /** Parses the field whose first token is `token`. */
  field(token: number): void {
    const { cursor, module } = this.#context;
    this.#token = token;
    cursor.at = token;
    if (cursor.kind === ANNOTATION) return parseCustomAnnotation(this.#context);
    const keyword = cursor.openKeyword();
    cursor.at += 2;
    const kind = KIND_BY_KEYWORD.get(keyword);
    if (kind !== undefined) return this.#definition(kind);
    switch (keyword) {
      case K.import:
        return this.#import();
      case K.export:
        return this.#export();
      case K.elem:
        return this.#elem();
      case K.data:
        return this.#data();
      default:
        if (module.start !== undefined) cursor.fail("multiple start sections", token);
        module.start = this.#context.index(this.#context.funcs);
        cursor.expectClose();
    }
  }

  /** Records the current field as the origin of the next entry of a list. */
  #place(list: PlacedField): void {
    this.#context.places?.field(list, this.#token);
  }

  // --- imports and exports ---

  #import(): void {
    const { cursor, module } = this.#context;
    const from = cursor.name();
    if (cursor.isOpen(K.item)) this.#importGroup(from);
    else {
      const name = cursor.name();
      this.#place("imports");
      module.imports.push({ module: from, name, desc: this.#externType(), offset: 0 });
    }
    cursor.expectClose();
  }

  /** The items of a group, and the type that they share unless each has its own. */
  #importGroup(from: string): void {
    const { cursor, module } = this.#context;
    const start = module.imports.length;
    const names: string[] = [];
    while (cursor.takeOpen(K.item)) {
      const name = cursor.name();
      this.#place("imports");
      if (cursor.kind === RIGHT) names.push(name);
      else module.imports.push({ module: from, name, desc: this.#externType(), offset: 0 });
      cursor.expectClose();
    }
    const desc = names.length > 0 ? this.#externType(names.length) : undefined;
    for (const name of names) module.imports.push({ module: from, name, desc: desc!, offset: 0 });
    const count = module.imports.length - start;
    module.importGroups.push({ module: from, start, count, sameType: desc !== undefined, desc, offset: 0 });
  }

  /** The type of `count` imports, in its parentheses. */
  #externType(count = 1): ImportDesc {
    const { cursor } = this.#context;
    const kind = KIND_BY_KEYWORD.get(cursor.openKeyword())!;
    cursor.at += 2;
    this.#context.skipBinder();
    this.#next[kind] += count;
    const desc = this.#importDesc(kind);
    cursor.expectClose();
    return desc;
  }

  #importDesc(kind: ExternKind): ImportDesc {
    const context = this.#context;
    switch (kind) {
      case "func":
        return this.#importedFunc();
      case "tag":
        return { kind, type: { typeIndex: this.#funcType() } };
      case "table":
        return { kind, type: parseTableType(context, parseAddressType(context)) };
      case "memory":
        return { kind, type: parseMemoryType(context, parseAddressType(context)) };
      case "global":
        return { kind, type: parseGlobalType(context) };
    }
  }

  /** A type use, or `(exact …)` with one. */
  #importedFunc(): ImportDesc {
    const { cursor } = this.#context;
    if (!cursor.takeOpen(K.exact)) return { kind: "func", typeIndex: this.#funcType() };
    const typeIndex = this.#funcType();
    cursor.expectClose();
    return { kind: "func", typeIndex, exact: true };
  }

  /** A type use whose parameters may be named, although nothing can refer to the names. */
  #funcType(): number {
    return parseTypeUse(this.#context, "ignored");
  }

  #export(): void {
    const { cursor, module } = this.#context;
    const name = cursor.name();
    const kind = KIND_BY_KEYWORD.get(cursor.openKeyword());
    if (kind === undefined) return cursor.unexpected(cursor.kind === LEFT ? cursor.at + 1 : cursor.at);
    cursor.at += 2;
    const index = this.#context.index(scopeOf(this.#context, kind));
    this.#place("exports");
    module.exports.push({ name, kind, index, offset: 0 });
    cursor.expectClose();
    cursor.expectClose();
  }

  // --- definitions ---

  /** A function, table, memory, global or tag: binder, inline exports, then an inline import or the definition. */
  #definition(kind: ExternKind): void {
    const { cursor, module } = this.#context;
    const index = this.#next[kind]++;
    this.#context.skipBinder();
    while (cursor.takeOpen(K.export)) {
      this.#place("exports");
      module.exports.push({ name: cursor.name(), kind, index, offset: 0 });
      cursor.expectClose();
    }
    if (cursor.takeOpen(K.import)) {
      const from = cursor.name();
      const name = cursor.name();
      cursor.expectClose();
      this.#place("imports");
      module.imports.push({ module: from, name, desc: this.#importDesc(kind), offset: 0 });
    } else {
      switch (kind) {
        case "func":
          this.#func(index);
          break;
        case "table":
          this.#table(index);
          break;
        case "memory":
          this.#memory(index);
          break;
        case "global":
          this.#place("globals");
          module.globals.push({ type: parseGlobalType(this.#context), init: raw(this.#code.expression()) });
          break;
        case "tag":
          module.tags.push({ typeIndex: this.#funcType() });
          break;
      }
    }
    cursor.expectClose();
  }

  #func(index: number): void {
    const context = this.#context;
    const scope = this.#code.writer.locals;
    scope.clear();
    const names = new Map<number, string>();
    const typeIndex = parseTypeUse(context, { scope, names });
    const types: ValType[] = [];
    parseTypeGroups(context, K.local, types, { scope, names });
    context.places?.func(this.#token);
    const body = this.#code.functionBody(index, this.#encodeLocals(types));
    context.module.funcs.push({ typeIndex, body: raw(body) });
    if (names.size > 0) context.names.locals.set(index, names);
  }

  /** Local declarations: runs of one type. */
  #encodeLocals(types: readonly ValType[]): ByteWriter {
    const out = this.#locals;
    out.length = 0;
    let runs = 0;
    for (let i = 0; i < types.length; i++) if (i === 0 || types[i] !== types[i - 1]) runs++;
    out.u32(runs);
    for (let i = 0; i < types.length;) {
      const start = i;
      while (i < types.length && types[i] === types[start]) i++;
      out.u32(i - start);
      writeValType(out, types[start]);
    }
    return out;
  }

  #table(index: number): void {
    const context = this.#context;
    const { cursor, module } = context;
    const address = parseAddressType(context);
    if (!isRefType(context)) {
      const type = parseTableType(context, address);
      this.#place("tables");
      module.tables.push(cursor.kind !== RIGHT ? { type, init: raw(this.#code.expression()) } : { type });
      return;
    }
    const element = parseRefType(context);
    cursor.expectOpen(K.elem);
    const init = this.#inlineElements(element);
    cursor.expectClose();
    const size = BigInt(init.kind === "funcs" ? init.indices.length : init.exprs.length);
    this.#place("tables");
    module.tables.push({ type: { limits: { address, min: size, max: size }, element } });
    const mode = { kind: "active", table: index, start: raw(zeroOf(address)) } as const;
    this.#place("elems");
    module.elems.push({ type: init.kind === "funcs" ? FUNC_NON_NULL : element, init, mode, offset: 0 });
  }

  /** The elements of a table with inline content. Function indices stay compact if the table's type allows it. */
  #inlineElements(element: ValType): ElementSegment["init"] {
    const context = this.#context;
    if (context.cursor.kind === LEFT) return { kind: "exprs", exprs: this.#elementExprs() };
    const indices = this.#funcIndices();
    if (element === FUNCREF || element === FUNC_NON_NULL) return { kind: "funcs", indices };
    return { kind: "exprs", exprs: indices.map((index) => raw(refFunc(index))) };
  }

  #memory(index: number): void {
    const context = this.#context;
    const { cursor, module } = context;
    const address = parseAddressType(context);
    const size = parsePageSize(context);
    if (!cursor.takeOpen(K.data)) {
      if (size.pageSize !== undefined) cursor.unexpected();
      module.memories.push(parseMemoryType(context, address));
      return;
    }
    const bytes = cursor.strings();
    cursor.expectClose();
    const pages = BigInt(Math.ceil(bytes.length / (size.pageSize ?? PAGE_BYTES)));
    module.memories.push({ limits: { address, min: pages, max: pages }, shared: false, ...size });
    this.#place("datas");
    module.datas.push({ bytes, mode: { kind: "active", memory: index, start: raw(zeroOf(address)) }, offset: 0 });
  }

  // --- segments ---

  #elem(): void {
    const context = this.#context;
    const { cursor, module } = context;
    context.skipBinder();
    let mode: ElementSegment["mode"] = { kind: "passive" };
    let bare = false;
    if (cursor.takeKeyword(K.declare)) {
      mode = { kind: "declarative" };
    } else {
      // Only an active segment without a table may list function indices without `func`.
      bare = !cursor.isOpen(K.table);
      const table = this.#segmentTarget(K.table);
      if (table !== undefined || (cursor.kind === LEFT && !cursor.isOpen(K.ref))) {
        mode = { kind: "active", table: table ?? 0, start: raw(this.#offset()) };
      }
    }
    if (isRefType(context)) {
      const type = parseRefType(context);
      this.#place("elems");
      module.elems.push({ type, init: { kind: "exprs", exprs: this.#elementExprs() }, mode, offset: 0 });
    } else {
      if (!cursor.takeKeyword(K.func) && !(mode.kind === "active" && bare)) cursor.unexpected();
      const init = { kind: "funcs", indices: this.#funcIndices() } as const;
      this.#place("elems");
      module.elems.push({ type: FUNC_NON_NULL, init, mode, offset: 0 });
    }
    cursor.expectClose();
  }

  #data(): void {
    const context = this.#context;
    const { cursor, module } = context;
    context.skipBinder();
    const memory = this.#segmentTarget(K.memory);
    const active = memory !== undefined || cursor.kind === LEFT;
    const start = active ? raw(this.#offset()) : undefined;
    const bytes = cursor.strings();
    cursor.expectClose();
    const mode = start === undefined
      ? { kind: "passive" } as const
      : { kind: "active", memory: memory ?? 0, start } as const;
    this.#place("datas");
    module.datas.push({ bytes, mode, offset: 0 });
  }

  /** Parses `(table x)` or `(memory x)`, or the bare number of early versions of the format. */
  #segmentTarget(keyword: number): number | undefined {
    const context = this.#context;
    if (context.cursor.kind === NAT) return context.cursor.u32();
    if (!context.cursor.takeOpen(keyword)) return undefined;
    const index = context.index(keyword === K.table ? context.tables : context.memories);
    context.cursor.expectClose();
    return index;
  }

  /** Parses `(offset expr)` or one folded instruction. */
  #offset(): Uint8Array {
    const cursor = this.#context.cursor;
    if (!cursor.takeOpen(K.offset)) return this.#code.foldedExpression();
    const bytes = this.#code.expression();
    cursor.expectClose();
    return bytes;
  }

  /** Parses element expressions: `(item expr)` or one folded instruction each. */
  #elementExprs(): RawBytes[] {
    const cursor = this.#context.cursor;
    const exprs: RawBytes[] = [];
    while (cursor.kind === LEFT) {
      if (!cursor.takeOpen(K.item)) {
        exprs.push(raw(this.#code.foldedExpression()));
        continue;
      }
      exprs.push(raw(this.#code.expression()));
      cursor.expectClose();
    }
    return exprs;
  }

  #funcIndices(): number[] {
    const context = this.#context;
    const indices: number[] = [];
    while (context.hasIndex()) indices.push(context.index(context.funcs));
    return indices;
  }
}

/** `i32.const 0` or `i64.const 0`, and `end`. */
function zeroOf(address: typeof I32 | typeof I64): Uint8Array {
  return Uint8Array.of(address === I32 ? CONSTANT.I32_CONST : CONSTANT.I64_CONST, 0, CONSTANT.END);
}

/** `ref.func index` and `end`. */
function refFunc(index: number): Uint8Array {
  const out = new ByteWriter(8);
  writeRefFunc(out, index);
  return out.finish();
}
