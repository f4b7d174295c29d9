/**
 * Facts about a core module: its imports and exports, the features that it requires, its producers, and the sizes of
 * its sections and functions. In: a decoded module. Out: plain data, which is also the JSON of `waft inspect`.
 * Invariant: the module is valid, and nothing is compiled.
 */
import type { decodeModule } from "@waft/engine/internal/binary/decode";
import { SECTION } from "@waft/engine/internal/wasm/section_ids";
import { ALL_FEATURE_ROWS, featureSet } from "@waft/engine/internal/features";
import { validateModule } from "@waft/engine/internal/validate/module";
import {
  funcTypeName,
  type GlobalType,
  I64,
  type Limits,
  type MemoryType,
  valTypeName,
} from "@waft/engine/internal/wasm/types";
import { type Producer, producersOf, type SectionRow, sectionsOf } from "./inspect_sections.ts";

/** A named entity with its type in the notation of the text format. */
export interface TypedName {
  readonly name: string;
  readonly kind: string;
  readonly type: string;
}

/** A function of the module with the size of its body. */
export interface SizedFunction {
  readonly index: number;
  /** From the name section, or the name of its first export. */
  readonly name?: string;
  readonly bytes: number;
}

/** Facts about a core module. Sizes are in bytes. */
export interface ModuleFacts {
  readonly bytes: number;
  readonly name?: string;
  readonly sections: readonly SectionRow[];
  readonly imports: readonly (TypedName & { readonly module: string })[];
  readonly exports: readonly TypedName[];
  readonly memories: readonly string[];
  readonly tables: readonly string[];
  /** Features that the module needs, in the order of the manifest's keys. */
  readonly features: readonly string[];
  readonly producers: readonly Producer[];
  /** Functions of the module itself, the largest first. */
  readonly functions: readonly SizedFunction[];
  /** Data segments: their number and the bytes that they hold. */
  readonly data: { readonly count: number; readonly bytes: number };
  readonly start?: number;
}

/** Every feature enabled, so that each valid module is shown. */
export const ALL_FEATURES = featureSet(Object.fromEntries(ALL_FEATURE_ROWS.map(({ name }) => [name, true])));
const SECTION_NAMES = new Map<number, string>(Object.entries(SECTION).map(([name, id]) => [id, name]));

type ValidModule = ReturnType<typeof validateModule>;

/** The facts about a decoded module. Throws the errors of the validator. */
export function moduleFacts(decoded: ReturnType<typeof decodeModule>): ModuleFacts {
  const module = validateModule(decoded, ALL_FEATURES);
  const { bytes, names, start } = module;
  return {
    bytes: bytes.length,
    ...(names.module === undefined ? {} : { name: names.module }),
    sections: sectionsOf(bytes, (id) => SECTION_NAMES.get(id) ?? `section ${id}`),
    ...externs(module),
    memories: module.memoryTypes.map(memoryName),
    tables: module.tableTypes.map(tableName),
    features: ALL_FEATURE_ROWS.map(({ name }) => name).filter((name) => module.usedFeatures.has(name)),
    producers: module.customs.filter(({ name }) => name === "producers").flatMap((custom) => producersOf(custom.bytes)),
    functions: sizedFunctions(module),
    data: { count: module.datas.length, bytes: module.datas.reduce((sum, data) => sum + data.bytes.length, 0) },
    ...(start === undefined ? {} : { start }),
  };
}

function externs(module: ValidModule): Pick<ModuleFacts, "imports" | "exports"> {
  const { funcTypes, tableTypes, memoryTypes, globalTypes, tagTypes } = module;
  const names = {
    func: (index: number) => funcTypeName(funcTypes[index]),
    table: (index: number) => tableName(tableTypes[index]),
    memory: (index: number) => memoryName(memoryTypes[index]),
    global: (index: number) => globalName(globalTypes[index]),
    tag: (index: number) => funcTypeName(tagTypes[index]),
  };
  const next = { func: 0, table: 0, memory: 0, global: 0, tag: 0 };
  const imports = module.imports.map(({ module: from, name, desc: { kind } }) => {
    return { module: from, name, kind, type: names[kind](next[kind]++) };
  });
  return {
    imports,
    exports: module.exports.map(({ name, kind, index }) => ({ name, kind, type: names[kind](index) })),
  };
}

function limitsName({ min, max, address }: Limits): string {
  return `${address === I64 ? "i64 " : ""}${min}${max === undefined ? "" : ` ${max}`}`;
}

export function memoryName({ limits, shared, pageSize }: MemoryType): string {
  const size = pageSize === undefined ? "" : ` (pagesize ${pageSize})`;
  return `${limitsName(limits)}${shared ? " shared" : ""}${size}`;
}

export function tableName({ limits, element }: { limits: Limits; element: number }): string {
  return `${limitsName(limits)} ${valTypeName(element)}`;
}

export function globalName({ type, mutable }: GlobalType): string {
  return mutable ? `(mut ${valTypeName(type)})` : valTypeName(type);
}

function sizedFunctions({ funcs, names, exports, importedFuncCount }: ValidModule): SizedFunction[] {
  const exported = new Map(exports.filter(({ kind }) => kind === "func").map(({ name, index }) => [index, name]));
  return funcs.map(({ body }, k) => {
    const index = importedFuncCount + k;
    const name = names.funcs.get(index) ?? exported.get(index);
    return { index, ...(name === undefined ? {} : { name }), bytes: body.bytes.length };
  }).sort((a, b) => b.bytes - a.bytes || a.index - b.index);
}
