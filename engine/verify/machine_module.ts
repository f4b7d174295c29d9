/**
 * The verifier's view of a compiled module: machine code, its tables, and the properties of the module that the code
 * relies on. In: the description of the code, and the types of its module. Out: MachineModule, which the rules read.
 * Invariant: nothing here comes from instruction selection, register allocation or emission; types and limits come from
 * the validated module, offsets from the layouts of engine/abi/.
 */
import type { Signature } from "../ir/types.ts";
import type { CodeDescription } from "../link/code_description.ts";
import type { CodeTables } from "../link/image.ts";
import type { AnnotatedModule } from "../validate/valid_module.ts";
import { CodeReader } from "../wasm/code_reader.ts";
import { tyOf } from "../wasm/ir_types.ts";
import type { Expr } from "../wasm/module.ts";
import { OPCODES } from "../wasm/opcodes.ts";
import { closeFuncType, closeValType, subtypeDepth } from "../wasm/subtype.ts";
import { type FuncType, I64, isGuardable, pageBytes, type ValType } from "../wasm/types.ts";

/** Code that every image carries, in front of its functions. */
interface KnownStubs {
  /** The stubs of this build: the image must begin with these bytes. */
  readonly bytes: Uint8Array;
  /** Offset of each stub, by number (codegen/machine_code.ts: STUB); −1: absent. */
  readonly start: Int32Array;
}

/** The signature of machine code, and the closed types behind it. */
export interface CodeType extends Signature {
  readonly type: FuncType;
}

/** A module's machine code, and everything that the rules know about the module. */
export interface MachineModule {
  readonly bytes: Uint8Array;
  readonly tables: CodeTables;
  readonly code: Pick<CodeDescription, "layout" | "settings">;
  /** Indices of tables and addresses of memories with explicit checks must be masked. */
  readonly masksTables: boolean;
  readonly masksMemories: boolean;
  readonly stubs: KnownStubs;
  /** Signature by function index, imports included, and by type index; undefined for types of objects. */
  readonly functionSignature: readonly CodeType[];
  readonly typeSignature: readonly (CodeType | undefined)[];
  /** Canonical ids by type index and by function index, and the depth of each type in its hierarchy. */
  readonly typeId: Int32Array;
  readonly functionTypeId: Int32Array;
  readonly typeDepth: Int32Array;
  /** By memory: 64-bit addresses, shared, and the smallest length in bytes. */
  readonly memoryIs64: readonly boolean[];
  /** By memory index: whether guard pages can bound its accesses. */
  readonly memoryIsGuardable: readonly boolean[];
  readonly memoryIsShared: readonly boolean[];
  readonly memoryBytes: readonly number[];
  /** By table: 64-bit indices, the closed type of elements, and the smallest length. */
  readonly tableIs64: readonly boolean[];
  readonly tableElement: readonly ValType[];
  readonly tableLength: readonly number[];
  /** By table: its length cannot change, so its elements never move. */
  readonly tableIsFixed: readonly boolean[];
  /**
   * By table: nothing but the module's code and its segments can write to it. If the code does not, its elements never
   * move, and are null or functions: of the type with canonical id `tableType` unless that is 0, of the own instance
   * with `tableIsOwn`.
   */
  readonly tableIsPrivate: readonly boolean[];
  readonly tableType: Int32Array;
  readonly tableIsOwn: readonly boolean[];
  /** The closed type of the elements of each element segment. */
  readonly segmentElement: readonly ValType[];
  /** By global: the context has the address of the value (imported and mutable), and the closed type of the value. */
  readonly globalIsCell: readonly boolean[];
  readonly globalType: readonly ValType[];
  /** Closed types of the payload by tag. */
  readonly tagPayload: readonly (readonly ValType[])[];
  readonly importedFunctions: number;
  /** By defined function: 1 if other code may take its place, so that nothing is known of the registers it writes. */
  readonly replaceable: Uint8Array | undefined;
}

function codeType(type: FuncType, ids: Int32Array): CodeType {
  const { params, results } = type;
  return {
    params: Uint8Array.from(params, tyOf),
    results: Uint8Array.from(results, tyOf),
    type: closeFuncType(type, ids),
  };
}

/** Whether table `t` is neither imported nor exported. */
function isPrivate(valid: AnnotatedModule, t: number): boolean {
  return t >= valid.importedTableCount && !valid.exports.some(({ kind, index }) => kind === "table" && index === t);
}

const NO_FUNCTION = -1, UNKNOWN_FUNCTION = -2;

/** The function that a constant expression refers to: NO_FUNCTION for null, UNKNOWN_FUNCTION for other expressions. */
function functionOf({ bytes, offset }: Expr): number {
  const reader = new CodeReader(bytes, 0, bytes.length, offset);
  const { mnemonic } = OPCODES[reader.next()];
  const func = mnemonic === "ref.func" ? reader.imm.index : mnemonic === "ref.null" ? NO_FUNCTION : UNKNOWN_FUNCTION;
  return OPCODES[reader.next()].mnemonic === "end" ? func : UNKNOWN_FUNCTION;
}

/** The functions that segments put into table `t`; undefined if not all are known. */
function functionsOf(valid: AnnotatedModule, t: number): number[] | undefined {
  const { importedTableCount } = valid;
  if (t < importedTableCount || valid.tables[t - importedTableCount].init !== undefined) return undefined;
  const active = [...valid.elems].filter(({ mode }) => mode.kind === "active" && mode.table === t);
  const functions = active.flatMap(({ init }) =>
    init.kind === "funcs" ? [...init.indices] : Array.from(init.exprs, functionOf)
  );
  return functions.includes(UNKNOWN_FUNCTION) ? undefined : functions.filter((func) => func !== NO_FUNCTION);
}

/** The canonical id of the type of all of `functions`, 0 if they are not known, none, or of several types. */
function typeOfFunctions({ canonicalIds, funcTypeIndices }: AnnotatedModule, functions: number[] | undefined): number {
  const [first = 0, ...others] = new Set(functions?.map((func) => canonicalIds[funcTypeIndices[func]]));
  return others.length === 0 ? first : 0;
}

/** Combines machine code with the types of its module. */
export function machineModule(
  valid: AnnotatedModule,
  bytes: Uint8Array,
  tables: CodeTables,
  code: MachineModule["code"],
  stubs: KnownStubs,
  masks: Pick<MachineModule, "masksTables" | "masksMemories">,
  replaceable?: Uint8Array,
): MachineModule {
  const { canonicalIds: ids } = valid;
  const elements = valid.tableTypes.map((_, t) => functionsOf(valid, t));
  return {
    bytes,
    tables,
    code,
    stubs,
    ...masks,
    functionSignature: valid.funcTypes.map((type) => codeType(type, ids)),
    typeSignature: valid.types.map(({ composite }) => composite.kind === "func" ? codeType(composite, ids) : undefined),
    typeId: ids,
    functionTypeId: Int32Array.from(valid.funcTypeIndices, (index) => ids[index]),
    typeDepth: Int32Array.from(ids, (id) => subtypeDepth(id)),
    memoryIs64: valid.memoryTypes.map(({ limits }) => limits.address === I64),
    memoryIsShared: valid.memoryTypes.map(({ shared }) => shared),
    memoryIsGuardable: valid.memoryTypes.map(isGuardable),
    memoryBytes: valid.memoryTypes.map((type) => Number(type.limits.min) * pageBytes(type)),
    tableIs64: valid.tableTypes.map(({ limits }) => limits.address === I64),
    tableElement: valid.tableTypes.map(({ element }) => closeValType(element, ids)),
    tableLength: valid.tableTypes.map(({ limits }) => Number(limits.min)),
    tableIsFixed: valid.tableTypes.map(({ limits }) => limits.max === limits.min),
    tableIsPrivate: valid.tableTypes.map((_, t) => isPrivate(valid, t)),
    tableType: Int32Array.from(elements, (functions) => typeOfFunctions(valid, functions)),
    tableIsOwn: elements.map((functions) => functions?.every((func) => func >= valid.importedFuncCount) ?? false),
    segmentElement: Array.from(valid.elems, ({ type }) => closeValType(type, ids)),
    globalIsCell: valid.globalTypes.map(({ mutable }, k) => mutable && k < valid.importedGlobalCount),
    globalType: valid.globalTypes.map(({ type }) => closeValType(type, ids)),
    tagPayload: valid.tagTypes.map(({ params }) => params.map((type) => closeValType(type, ids))),
    importedFunctions: valid.importedFuncCount,
    replaceable,
  };
}
