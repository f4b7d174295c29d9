/**
 * Module → text (specification, chapter 6): one field per line or block, instructions flat and indented, names of the
 * name section as identifiers. Imports are printed in the order of the module, definitions after them by index space.
 *
 * Establishes: parsing the text gives a module with the same sections, byte for byte, except for details that the text
 * format cannot express: over-long integers, a data count that is not required, local declarations in a longer form.
 * Custom sections become annotations. Throws MalformedError if a body is malformed.
 */
import { displayName, shortName } from "../base/guest_stack.ts";
import { WaftError } from "../base/errors.ts";
import { CodePrinter, indent } from "./print_code.ts";
import { PLACE_NAMES } from "./custom_annotations.ts";
import { BRANCH_HINTS, type BranchHints, readBranchHints } from "../wasm/branch_hints.ts";
import { IndexNames, quoteBytes, quoteText } from "./print_names.ts";
import { TypePrinter } from "./print_types.ts";
import type {
  CustomSection,
  DataSegment,
  ElementSegment,
  Expr,
  ExternKind,
  Import,
  ImportDesc,
  ImportGroup,
  Module,
} from "../wasm/module.ts";

/**
 * The module with names for people: short ones, and those of functions without the mangling of their language. Its text
 * repeats the name of a function at each call, so a long name would make a text of gigabytes from a module of a
 * megabyte.
 */
export function withShortNames<M extends Module>(module: M): M {
  const short = (map: ReadonlyMap<number, string>, nameOf = shortName) =>
    new Map([...map].map(([key, name]) => [key, nameOf(name)]));
  const inner = (maps: ReadonlyMap<number, ReadonlyMap<number, string>>) =>
    new Map([...maps].map(([key, map]) => [key, short(map)]));
  const { names } = module;
  return {
    ...module,
    names: {
      ...(names.module === undefined ? {} : { module: shortName(names.module) }),
      funcs: short(names.funcs, displayName),
      locals: inner(names.locals),
      labels: inner(names.labels),
      types: short(names.types),
      tables: short(names.tables),
      memories: short(names.memories),
      globals: short(names.globals),
      elems: short(names.elems),
      datas: short(names.datas),
      fields: inner(names.fields),
      tags: short(names.tags),
    },
  };
}

/** The text of a module. */
export function printModule(module: Module): string {
  return new ModulePrinter(module).print();
}

/** The lines of a function's text, and the byte offset in the module of the instruction on each; 0 for other lines. */
export interface FunctionText {
  readonly lines: readonly string[];
  readonly offsets: readonly number[];
}

/** A function that gives the text of single functions of a module, by the index of the definition. */
export function functionPrinter(module: Module): (defined: number) => FunctionText {
  const printer = new ModulePrinter(module);
  const imported = module.imports.filter(({ desc }) => desc.kind === "func").length;
  return (defined) => printer.functionText(defined, imported);
}

/** The instructions of a function body up to its first fault. */
export interface ListedBody {
  /** The declared types of locals, without parameters. */
  readonly locals: readonly string[];
  /** Instructions, indented by their nesting, with the offset of each. */
  readonly lines: readonly string[];
  readonly offsets: readonly number[];
  /** Offset after the last instruction. */
  readonly end: number;
  readonly fault?: WaftError;
}

/** Texts of parts of a module, which may be the prefix of a damaged one. */
export interface PartTexts {
  /** The definition of a type, without its index or name. */
  type(index: number): string;
  /** A constant expression. */
  constant(expr: Expr): string;
  /** The body of a defined function. */
  body(defined: number): ListedBody;
}

/** Returns the texts of parts of `module`, for listings beside offsets and bytes. */
export function partTexts(module: Module): PartTexts {
  const printer = new ModulePrinter(module);
  const imported = module.imports.filter(({ desc }) => desc.kind === "func").length;
  return {
    type: (index) => printer.typeText(index),
    constant: (expr) => printer.constantText(expr),
    body: (defined) => printer.listedBody(defined, imported),
  };
}

class ModulePrinter {
  readonly #module: Module;
  readonly #hints: BranchHints;
  readonly #types: TypePrinter;
  readonly #funcs: IndexNames;
  readonly #tables: IndexNames;
  readonly #memories: IndexNames;
  readonly #globals: IndexNames;
  readonly #tags: IndexNames;
  readonly #elems: IndexNames;
  readonly #datas: IndexNames;
  readonly #code: CodePrinter;
  readonly #lines: string[] = [];
  /** The next index of each kind: imports first. */
  readonly #next: Record<ExternKind, number> = { func: 0, table: 0, memory: 0, global: 0, tag: 0 };

  constructor(module: Module) {
    const names = module.names;
    this.#module = module;
    this.#hints = readBranchHints(module);
    this.#types = new TypePrinter(module);
    this.#funcs = new IndexNames(names.funcs);
    this.#tables = new IndexNames(names.tables);
    this.#memories = new IndexNames(names.memories);
    this.#globals = new IndexNames(names.globals);
    this.#tags = new IndexNames(names.tags);
    this.#elems = new IndexNames(names.elems);
    this.#datas = new IndexNames(names.datas);
    this.#code = new CodePrinter(this.#types, {
      funcs: this.#funcs,
      tables: this.#tables,
      memories: this.#memories,
      globals: this.#globals,
      tags: this.#tags,
      elems: this.#elems,
      datas: this.#datas,
    });
  }

  print(): string {
    const module = this.#module;
    const name = module.names.module;
    const lines = this.#lines;
    lines.push(`(module${name === undefined ? "" : new IndexNames(new Map([[0, name]])).binder(0)}`);
    this.#typeSection();
    this.#imports();
    for (const table of module.tables) {
      const init = table.init === undefined ? "" : ` ${this.#code.bareExpression(table.init)}`;
      this.#field(`table${this.#binder("table")} ${this.#types.tableType(table.type)}${init}`);
    }
    for (const type of module.memories) this.#field(`memory${this.#binder("memory")} ${this.#types.memoryType(type)}`);
    for (const tag of module.tags) this.#field(`tag${this.#binder("tag")}${this.#types.typeUse(tag.typeIndex)}`);
    for (const { type, init } of module.globals) {
      const binder = this.#binder("global");
      this.#field(`global${binder} ${this.#types.globalType(type)} ${this.#code.bareExpression(init)}`);
    }
    for (const { name, kind, index } of module.exports) {
      this.#field(`export ${quoteText(name)} (${kind} ${this.#namesOf(kind).ref(index)})`);
    }
    if (module.start !== undefined) this.#field(`start ${this.#funcs.ref(module.start)}`);
    for (let i = 0; i < module.elems.length; i++) this.#elem(module.elems.at(i)!, i);
    this.#functions();
    module.datas.forEach((segment, index) => this.#data(segment, index));
    for (const custom of module.customs) this.#custom(custom);
    lines.push(lines.pop()! + ")");
    return lines.join("\n") + "\n";
  }

  #field(text: string): void {
    this.#lines.push(`  (${text})`);
  }

  #namesOf(kind: ExternKind): IndexNames {
    switch (kind) {
      case "func":
        return this.#funcs;
      case "table":
        return this.#tables;
      case "memory":
        return this.#memories;
      case "global":
        return this.#globals;
      case "tag":
        return this.#tags;
    }
  }

  /** The binder of the next definition of a kind. */
  #binder(kind: ExternKind): string {
    return this.#namesOf(kind).binder(this.#next[kind]++);
  }

  #typeSection(): void {
    const types = this.#module.types;
    for (const { start, count } of this.#module.recGroups) {
      if (count === 1) {
        this.#lines.push(`  ${this.#types.definition(start, types[start])}`);
        continue;
      }
      this.#lines.push("  (rec");
      for (let i = start; i < start + count; i++) this.#lines.push(`    ${this.#types.definition(i, types[i])}`);
      this.#lines.push(this.#lines.pop()! + ")");
    }
  }

  #imports(): void {
    const { imports, importGroups } = this.#module;
    let at = 0;
    for (const group of importGroups) {
      for (; at < group.start; at++) this.#import(imports[at]);
      // The text form has no empty groups.
      if (group.count > 0) this.#importGroup(group, imports.slice(at, at += group.count));
    }
    for (; at < imports.length; at++) this.#import(imports[at]);
  }

  #import({ module, name, desc }: Import): void {
    this.#field(`import ${quoteText(module)} ${quoteText(name)} ${this.#externType(desc, this.#binder(desc.kind))}`);
  }

  /** A group whose imports have names of their own cannot share the type in text, because its form has no binders. */
  #importGroup({ module, sameType, desc }: ImportGroup, entries: readonly Import[]): void {
    const head = `import ${quoteText(module)}`;
    const binders = entries.map((entry) => this.#binder(entry.desc.kind));
    if (sameType && !binders.some((binder) => binder.startsWith(" $"))) {
      const names = entries.map(({ name }) => ` (item ${quoteText(name)})`);
      this.#field(`${head}${names.join("")} ${this.#externType(desc!, "")}`);
    } else {
      const items = entries.map(({ name, desc }, i) =>
        `\n    (item ${quoteText(name)} ${this.#externType(desc, binders[i])})`
      );
      this.#field(`${head}${items.join("")}`);
    }
  }

  /** The type of an import in its parentheses. */
  #externType(desc: ImportDesc, binder: string): string {
    const head = `(${desc.kind}${binder}`;
    switch (desc.kind) {
      case "func":
        return desc.exact === true
          ? `${head} (exact${this.#types.typeUse(desc.typeIndex)}))`
          : `${head}${this.#types.typeUse(desc.typeIndex)})`;
      case "tag":
        return `${head}${this.#types.typeUse(desc.type.typeIndex)})`;
      case "table":
        return `${head} ${this.#types.tableType(desc.type)})`;
      case "memory":
        return `${head} ${this.#types.memoryType(desc.type)})`;
      case "global":
        return `${head} ${this.#types.globalType(desc.type)})`;
    }
  }

  #functions(): void {
    const { funcs } = this.#module;
    for (let k = 0; k < funcs.length; k++) this.#function(this.#lines, k, this.#next.func++);
  }

  /** The text of defined function `defined`, without the fields around it; `imported` functions precede it. */
  functionText(defined: number, imported: number): FunctionText {
    const lines: string[] = [];
    const offsets: number[] = [];
    const head = this.#function(lines, defined, imported + defined, offsets);
    return { lines, offsets: [...new Array<number>(head).fill(0), ...offsets, 0] };
  }

  typeText(index: number): string {
    const definition = this.#types.definition(index, this.#module.types[index]);
    return definition.slice(`(type${this.#types.types.binder(index)} `.length, -1);
  }

  constantText(expr: Expr): string {
    return this.#code.bareExpression(expr);
  }

  /** The instructions of defined function `defined`, its last `end` included, up to the first fault. */
  listedBody(defined: number, imported: number): ListedBody {
    const { body } = this.#module.funcs[defined];
    const { names } = this.#module;
    const index = imported + defined;
    const lines: string[] = [];
    const offsets: number[] = [];
    let locals: string[] = [];
    let end = body.offset;
    let fault: WaftError | undefined;
    try {
      locals = this.#code.localTypes(body).map((type) => this.#types.valType(type));
      const labels = new IndexNames(names.labels.get(index));
      this.#code.body(lines, new IndexNames(names.locals.get(index)), labels, this.#hints.get(index), offsets);
      end = body.offset + body.bytes.length;
      lines.push(indent(2) + "end");
      offsets.push(end - 1);
    } catch (error) {
      if (!(error instanceof WaftError)) throw error;
      fault = error;
      if (lines.length > 0) end = this.#code.at;
    }
    const margin = indent(2).length;
    const listed = lines.map((line) => line.slice(Math.min(margin, line.search(/\S/))));
    return { locals, lines: listed, offsets, end, ...(fault === undefined ? {} : { fault }) };
  }

  /** Appends the text of a function to `lines`; returns the number of lines before its first instruction. */
  #function(lines: string[], defined: number, index: number, offsets?: number[]): number {
    const { funcs, names } = this.#module;
    const { typeIndex, body } = funcs[defined];
    const locals = new IndexNames(names.locals.get(index));
    const type = this.#types.funcTypeAt(typeIndex);
    const params = type?.params ?? [];
    const localTypes = this.#code.localTypes(body);
    lines.push(
      `  (func${this.#funcs.binder(index)} (type ${this.#types.types.ref(typeIndex)})` +
        this.#types.namedGroups("param", params, locals, 0) + this.#types.group("result", type?.results ?? []),
    );
    const declared = this.#types.namedGroups("local", localTypes, locals, params.length);
    if (declared !== "") lines.push(indent(1) + " " + declared);
    const head = lines.length;
    this.#code.body(lines, locals, new IndexNames(names.labels.get(index)), this.#hints.get(index), offsets);
    lines.push("  )");
    return head;
  }

  #elem({ type, init, mode }: ElementSegment, index: number): void {
    let head = `elem${this.#elems.binder(index)}`;
    if (mode.kind === "declarative") head += " declare";
    if (mode.kind === "active") {
      head += ` (table ${this.#tables.ref(mode.table)}) ${this.#code.expression(mode.start, "offset")}`;
    }
    if (init.kind === "funcs") {
      this.#field(`${head} func${Array.from(init.indices, (func) => ` ${this.#funcs.ref(func)}`).join("")}`);
    } else {
      const exprs = Array.from(init.exprs, (expr) => ` ${this.#code.expression(expr, "item")}`);
      this.#field(`${head} ${this.#types.valType(type)}${exprs.join("")}`);
    }
  }

  #data({ bytes, mode }: DataSegment, index: number): void {
    let head = `data${this.#datas.binder(index)}`;
    if (mode.kind === "active") {
      head += ` (memory ${this.#memories.ref(mode.memory)}) ${this.#code.expression(mode.start, "offset")}`;
    }
    this.#strings(`  (${head}`, bytes);
  }

  /** `head`, the bytes as strings, and a parenthesis. */
  #strings(head: string, bytes: Uint8Array): void {
    const strings = quoteBytes(bytes);
    if (strings.length === 1) {
      this.#lines.push(`${head} ${strings[0]})`);
      return;
    }
    this.#lines.push(head);
    for (const string of strings) this.#lines.push(`    ${string}`);
    this.#lines.push(this.#lines.pop()! + ")");
  }

  #custom({ name, bytes, after }: CustomSection): void {
    // The text has these two already: as identifiers, and before their instructions.
    if (name === "name" || (name === BRANCH_HINTS && this.#hints.size > 0)) return;
    const place = after === 0 ? "(before first)" : `(after ${PLACE_NAMES.get(after)})`;
    this.#strings(`  (@custom ${quoteText(name)} ${place}`, bytes);
  }
}
