/**
 * Module → ValidModule (specification, 3.5): the rules of every section, in the order of the sections, then the
 * function bodies (code.ts), unless the caller validates them otherwise.
 *
 * Establishes the brand of ValidModule: its holder need not check anything again. Errors are InvalidError or
 * UnsupportedError (a disabled feature), and MalformedError for a malformed body, each with the offset of its cause.
 */
import { readBranchHints } from "../wasm/branch_hints.ts";
import type { FeatureSet } from "../settings/features.ts";
import type { ExternKind, Import, Module } from "../wasm/module.ts";
import {
  type FuncType,
  type GlobalType,
  isDefaultable,
  type MemoryType,
  type TableType,
  valTypeName,
} from "../wasm/types.ts";
import { validateConstExpr } from "./constants.ts";
import { FEATURE, FeatureGate } from "./gate.ts";
import { BODY_RULES } from "./late_rules.ts";
import { entryOffset, sectionOffset } from "./locate.ts";
import { SECTION } from "../wasm/section_ids.ts";
import { validateDatas, validateElems } from "./segments.ts";
import {
  type Declarations,
  invalid,
  useFeature,
  validateGlobalType,
  validateMemoryType,
  validateTableType,
  validateTypes,
} from "./types.ts";
import type { AnnotatedModule, ValidateOptions, ValidModule } from "./valid_module.ts";

/** The index spaces under construction: imports first, then definitions. */
interface Spaces {
  funcTypeIndices: number[];
  funcTypes: FuncType[];
  exactImports: Set<number>;
  tableTypes: TableType[];
  memoryTypes: MemoryType[];
  globalTypes: GlobalType[];
  tagTypeIndices: number[];
  tagTypes: FuncType[];
}

/** Validates `module` with the given features; see {@linkcode ValidateOptions} for bodies. */
export function validateModule(module: Module, features: FeatureSet, options: ValidateOptions = {}): ValidModule {
  const gate = new FeatureGate(features);
  const declarations: Declarations = { module, gate, locate: () => undefined };
  const canonicalIds = validateTypes(declarations);
  const spaces: Spaces = {
    funcTypeIndices: [],
    funcTypes: [],
    exactImports: new Set(),
    tableTypes: [],
    memoryTypes: [],
    globalTypes: [],
    tagTypeIndices: [],
    tagTypes: [],
  };
  for (const { offset } of module.importGroups) {
    declarations.locate = () => offset;
    useFeature(declarations, FEATURE["compact-import-section"], "a group of imports");
  }
  for (const entry of module.imports) declareImport(declarations, spaces, entry);
  const imported = countImports(spaces);
  declareDefinitions(declarations, spaces);
  const annotated: AnnotatedModule = {
    ...module,
    ...imported,
    ...spaces,
    funcTypeIndices: Int32Array.from(spaces.funcTypeIndices),
    tagTypeIndices: Int32Array.from(spaces.tagTypeIndices),
    declaredFuncs: new Uint8Array(spaces.funcTypes.length),
    canonicalIds,
    branchHints: readBranchHints(module),
    usedFeatures: gate.used,
    gate,
    blockResults: new Map(),
  };
  const valid = annotated as ValidModule;
  validateInitializers(declarations, valid);
  validateExports(declarations, valid);
  validateStart(declarations, valid);
  validateElems(declarations, valid);
  validateDatas(declarations, valid);
  if (options.bodies !== false) validateAllBodies(valid);
  return valid;
}

/** Validates the bodies of `valid`. Throws as {@linkcode validateModule} does. */
export function validateAllBodies(valid: ValidModule): void {
  for (let k = 0; k < valid.funcs.length; k++) validateDefined(valid, k);
}

/** Validates the body of defined function `index`. */
export function validateDefined(valid: ValidModule, index: number): void {
  BODY_RULES.get().validateBody(valid, valid.importedFuncCount + index);
}

function countImports(spaces: Spaces) {
  return {
    importedFuncCount: spaces.funcTypes.length,
    importedTableCount: spaces.tableTypes.length,
    importedMemoryCount: spaces.memoryTypes.length,
    importedGlobalCount: spaces.globalTypes.length,
    importedTagCount: spaces.tagTypes.length,
  };
}

function declareImport(declarations: Declarations, spaces: Spaces, { desc, offset }: Import): void {
  declarations.locate = () => offset;
  switch (desc.kind) {
    case "func":
      if (desc.exact === true) {
        useFeature(declarations, FEATURE["custom-descriptors"], "an imported function of an exact type");
        spaces.exactImports.add(spaces.funcTypes.length);
      }
      declareFunc(declarations, spaces, desc.typeIndex);
      break;
    case "table":
      declareTable(declarations, spaces, desc.type);
      break;
    case "memory":
      declareMemory(declarations, spaces, desc.type);
      break;
    case "global":
      if (desc.type.mutable) useFeature(declarations, FEATURE["mutable-global"], "an imported mutable global");
      declareGlobal(declarations, spaces, desc.type);
      break;
    case "tag":
      declareTag(declarations, spaces, desc.type.typeIndex);
      break;
  }
}

function declareDefinitions(declarations: Declarations, spaces: Spaces): void {
  const { module } = declarations;
  let index = 0;
  const at = (section: number, entry: number) => () => entryOffset(module, section, entry);
  // One closure for all functions: a module has thousands.
  declarations.locate = () => entryOffset(module, SECTION.function, index);
  for (; index < module.funcs.length; index++) declareFunc(declarations, spaces, module.funcs[index].typeIndex);
  module.tables.forEach((table, i) => {
    declarations.locate = at(SECTION.table, i);
    declareTable(declarations, spaces, table.type);
  });
  module.memories.forEach((memory, i) => {
    declarations.locate = at(SECTION.memory, i);
    declareMemory(declarations, spaces, memory);
  });
  module.tags.forEach((tag, i) => {
    declarations.locate = at(SECTION.tag, i);
    declareTag(declarations, spaces, tag.typeIndex);
  });
  module.globals.forEach((global, i) => {
    declarations.locate = at(SECTION.global, i);
    declareGlobal(declarations, spaces, global.type);
  });
}

function funcTypeOf(declarations: Declarations, typeIndex: number): FuncType {
  const type = declarations.module.types[typeIndex];
  if (type === undefined) invalid(declarations, `unknown type ${typeIndex}`);
  if (type.composite.kind !== "func") invalid(declarations, `type mismatch: type ${typeIndex} is not a function type`);
  return type.composite;
}

function declareFunc(declarations: Declarations, spaces: Spaces, typeIndex: number): void {
  spaces.funcTypes.push(funcTypeOf(declarations, typeIndex));
  spaces.funcTypeIndices.push(typeIndex);
}

function declareTable(declarations: Declarations, spaces: Spaces, type: TableType): void {
  if (spaces.tableTypes.length > 0) {
    useFeature(declarations, FEATURE["reference-types"], "multiple tables: a second one");
  }
  validateTableType(declarations, type);
  spaces.tableTypes.push(type);
}

function declareMemory(declarations: Declarations, spaces: Spaces, type: MemoryType): void {
  if (spaces.memoryTypes.length > 0) {
    useFeature(declarations, FEATURE["multi-memory"], "multiple memories: a second one");
  }
  validateMemoryType(declarations, type);
  spaces.memoryTypes.push(type);
}

function declareGlobal(declarations: Declarations, spaces: Spaces, type: GlobalType): void {
  validateGlobalType(declarations, type);
  spaces.globalTypes.push(type);
}

function declareTag(declarations: Declarations, spaces: Spaces, typeIndex: number): void {
  useFeature(declarations, FEATURE["exception-handling"], "a tag");
  const type = funcTypeOf(declarations, typeIndex);
  if (type.results.length > 0) {
    if (!declarations.gate.allows(FEATURE["stack-switching"])) {
      invalid(declarations, `non-empty tag result type: type ${typeIndex}, which needs the feature stack-switching`);
    }
    useFeature(declarations, FEATURE["stack-switching"], "a tag with results");
  }
  spaces.tagTypes.push(type);
  spaces.tagTypeIndices.push(typeIndex);
}

/** Initializers of tables see imported globals only; that of a global also sees the globals before it. */
function validateInitializers(declarations: Declarations, valid: ValidModule): void {
  valid.tables.forEach(({ type, init }, i) => {
    declarations.locate = () => entryOffset(valid, SECTION.table, i);
    if (init !== undefined) {
      useFeature(declarations, FEATURE["typed-function-references"], "a table with an initial value");
      validateConstExpr(valid, init, type.element, valid.importedGlobalCount);
    } else if (!isDefaultable(type.element)) {
      invalid(declarations, `type mismatch: table of ${valTypeName(type.element)} needs an initial value`);
    }
  });
  valid.globals.forEach(({ type, init }, i) => {
    validateConstExpr(valid, init, type.type, valid.importedGlobalCount + i);
  });
}

/** The name of each kind of export, and the number of entities of that kind. */
const EXPORTED: Readonly<Record<ExternKind, readonly [string, (valid: ValidModule) => number]>> = {
  func: ["function", (valid) => valid.funcTypes.length],
  table: ["table", (valid) => valid.tableTypes.length],
  memory: ["memory", (valid) => valid.memoryTypes.length],
  global: ["global", (valid) => valid.globalTypes.length],
  tag: ["tag", (valid) => valid.tagTypes.length],
};

function validateExports(declarations: Declarations, valid: ValidModule): void {
  const names = new Set<string>();
  for (const { name, kind, index, offset } of valid.exports) {
    declarations.locate = () => offset;
    const [title, count] = EXPORTED[kind];
    if (index >= count(valid)) invalid(declarations, `unknown ${title} ${index}`);
    if (names.has(name)) invalid(declarations, `duplicate export name ${JSON.stringify(name)}`);
    names.add(name);
    if (kind === "func") valid.declaredFuncs[index] = 1;
    if (kind === "global" && valid.globalTypes[index].mutable) {
      useFeature(declarations, FEATURE["mutable-global"], "an exported mutable global");
    }
  }
}

function validateStart(declarations: Declarations, valid: ValidModule): void {
  if (valid.start === undefined) return;
  declarations.locate = () => sectionOffset(valid, SECTION.start);
  const type = valid.funcTypes[valid.start];
  if (type === undefined) invalid(declarations, `unknown function ${valid.start}`);
  if (type.params.length > 0 || type.results.length > 0) {
    invalid(declarations, `start function ${valid.start} must have no parameters and no results`);
  }
}
