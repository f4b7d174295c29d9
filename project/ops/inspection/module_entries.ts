/**
 * The entries of a module's sections as lines, in the form of wasm-objdump. In: a module that may be damaged. Out: the
 * lines of a section, made one by one, because a segment may have millions of elements. Types and constants are in the
 * notation of the text format.
 */
import type { PartTexts } from "@waft/engine/internal/text/print";
import {
  elementCount,
  type ExternKind,
  type ImportDesc,
  lengthOf,
  type Module,
} from "@waft/engine/internal/wasm/module";
import { SECTION } from "@waft/engine/internal/wasm/section_ids";
import { valTypeName } from "@waft/engine/internal/wasm/types";
import { hexLines } from "./hex_lines.ts";
import { globalName, memoryName, tableName } from "./inspect_module.ts";
import { producersOf } from "./inspect_sections.ts";
import type { Frame } from "./section_frames.ts";

/** A module, or the part of a damaged one before its fault. */
export interface DumpedModule {
  readonly module: Module;
  readonly funcTypes: readonly number[];
  readonly texts: () => PartTexts;
}

type Lister = (dumped: DumpedModule) => Iterable<string>;

/** The lines of a section. */
export function moduleEntries(dumped: DumpedModule, section: Frame): Iterable<string> {
  return section.id === SECTION.custom ? customEntries(dumped, section) : LISTERS[section.id]?.(dumped) ?? [];
}

const LISTERS: Readonly<Record<number, Lister>> = {
  [SECTION.type]: ({ module, texts }) => module.types.map((_, index) => ` - type[${index}] ${texts().type(index)}`),
  [SECTION.import]: imports,
  [SECTION.function]: ({ module, funcTypes }) => {
    const first = importedCount(module, "func");
    return funcTypes.map((type, k) => ` - func[${first + k}] sig=${type}${funcLabel(module, first + k)}`);
  },
  [SECTION.table]: ({ module, texts }) =>
    module.tables.map(({ type, init }, k) => {
      const value = init === undefined ? "" : ` = ${texts().constant(init)}`;
      return ` - table[${importedCount(module, "table") + k}] ${tableName(type)}${value}`;
    }),
  [SECTION.memory]: ({ module }) =>
    module.memories.map((type, k) => ` - memory[${importedCount(module, "memory") + k}] ${memoryName(type)}`),
  [SECTION.tag]: ({ module }) =>
    module.tags.map(({ typeIndex }, k) => ` - tag[${importedCount(module, "tag") + k}] sig=${typeIndex}`),
  [SECTION.global]: ({ module, texts }) =>
    module.globals.map(({ type, init }, k) =>
      ` - global[${importedCount(module, "global") + k}] ${globalName(type)} = ${texts().constant(init)}`
    ),
  [SECTION.export]: ({ module }) =>
    module.exports.map(({ name, kind, index }) => {
      const label = kind === "func" ? funcLabel(module, index) : "";
      return ` - ${kind}[${index}]${label} -> ${quoted(name)}`;
    }),
  [SECTION.start]: ({ module }) =>
    module.start === undefined ? [] : [` - func[${module.start}]${funcLabel(module, module.start)}`],
  [SECTION.element]: elements,
  [SECTION.dataCount]: ({ module }) => module.dataCount === undefined ? [] : [` - data count: ${module.dataCount}`],
  [SECTION.code]: ({ module }) => {
    const first = importedCount(module, "func");
    return module.funcs.map(({ body }, k) =>
      ` - func[${first + k}] size=${lengthOf(body)}${funcLabel(module, first + k)}`
    );
  },
  [SECTION.data]: datas,
};

/** A name of the file in quotes; the caller escapes what is invisible. */
function quoted(name: string): string {
  return JSON.stringify(name);
}

function importedCount(module: Module, kind: ExternKind): number {
  return module.imports.reduce((count, { desc }) => desc.kind === kind ? count + 1 : count, 0);
}

function funcLabel({ names }: Module, index: number): string {
  const name = names.funcs.get(index);
  return name === undefined ? "" : ` <${name}>`;
}

function imports({ module }: DumpedModule): string[] {
  const next: Record<ExternKind, number> = { func: 0, table: 0, memory: 0, global: 0, tag: 0 };
  return module.imports.map(({ module: from, name, desc }) => {
    const index = next[desc.kind]++;
    const label = desc.kind === "func" ? funcLabel(module, index) : "";
    return ` - ${desc.kind}[${index}] ${importType(desc)}${label} <- ${quoted(from)} ${quoted(name)}`;
  });
}

function importType(desc: ImportDesc): string {
  switch (desc.kind) {
    case "func":
      return `sig=${desc.typeIndex}`;
    case "tag":
      return `sig=${desc.type.typeIndex}`;
    case "table":
      return tableName(desc.type);
    case "memory":
      return memoryName(desc.type);
    case "global":
      return globalName(desc.type);
  }
}

function* elements({ module, texts }: DumpedModule): Iterable<string> {
  let index = 0;
  for (const segment of module.elems) {
    const { type, init, mode } = segment;
    const place = mode.kind === "active" ? `table=${mode.table} ` : "";
    const start = mode.kind === "active" ? texts().constant(mode.start) : "";
    const head = `${mode.kind} ${place}${valTypeName(type)} count=${elementCount(segment)}`;
    yield ` - segment[${index++}] ${head}${start === "" ? "" : ` - init ${start}`}`;
    // The index in its table, if that is known.
    let at = constantOf(start);
    if (init.kind === "funcs") {
      for (const func of init.indices) yield `  - elem[${at++}] = func[${func}]${funcLabel(module, func)}`;
    } else for (const expr of init.exprs) yield `  - elem[${at++}] = ${texts().constant(expr)}`;
  }
}

/** The number of a constant expression that is one; 0 for any other. */
function constantOf(text: string): number {
  const [, digits] = /^\(i(?:32|64)\.const (\d{1,15})\)$/.exec(text) ?? [];
  return digits === undefined ? 0 : Number(digits);
}

function* datas({ module, texts }: DumpedModule): Iterable<string> {
  let index = 0;
  for (const { bytes, mode } of module.datas) {
    const place = mode.kind === "active" ? `memory=${mode.memory} ` : "";
    const start = mode.kind === "active" ? texts().constant(mode.start) : "";
    yield ` - segment[${index++}] ${mode.kind} ${place}size=${bytes.length}${start === "" ? "" : ` - init ${start}`}`;
    for (const line of hexLines(bytes, constantOf(start))) yield `  - ${line}`;
  }
}

/** The name, and the contents of the sections that tools write. */
function* customEntries({ module }: DumpedModule, { customName = "", offset, bytes }: Frame): Iterable<string> {
  yield ` - name: ${quoted(customName)}`;
  if (customName === "name") {
    if (module.names.module !== undefined) yield ` - module <${module.names.module}>`;
    for (const [index, name] of module.names.funcs) yield ` - func[${index}] <${name}>`;
  }
  if (customName !== "producers") return;
  const custom = module.customs.find((one) => one.offset >= offset && one.offset <= offset + bytes);
  for (const { field, name, version } of custom === undefined ? [] : producersOf(custom.bytes)) {
    yield ` - ${field}: ${name} ${version}`.trimEnd();
  }
}
