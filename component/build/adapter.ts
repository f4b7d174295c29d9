/**
 * Adapters: core modules that implement the imports of another core module, such as those of WASI preview 1, by imports
 * of a world. An adapter uses the memory of the main module, and a stack that it allocates there. In: a decoded
 * adapter, and the names of the exports in use. Out: the adapter reduced to them, with allocation of its stack.
 *
 * Invariants: function indices do not change; an unused function traps; before an export runs, `__stack_pointer` points
 * to the end of a stack of 64 KiB. While the stack is being allocated, `allocation_state` is 1, by which an adapter
 * that the allocation calls again knows that it has no stack.
 */
import { ByteWriter } from "@waft/engine/internal/base/bytes";
import { encodeModule } from "@waft/engine/internal/binary/encode";
import { InvalidError } from "@waft/engine/internal/errors";
import { CodeReader } from "@waft/engine/internal/wasm/code_reader";
import type { Func, Module } from "@waft/engine/internal/wasm/module";
import { OPCODES } from "@waft/engine/internal/wasm/opcodes";
import { type FuncType, I32, type ValType } from "@waft/engine/internal/wasm/types";

/** The module name under which an adapter imports exports of the main module. */
export const MAIN_MODULE = "__main_module__";
/** The names of the main module's allocator. */
export const REALLOC_NAMES: readonly string[] = ["cabi_realloc", "canonical_abi_realloc"];

const STACK_BYTES = 65536;

/** A reduced adapter. */
interface ReducedAdapter {
  readonly bytes: Uint8Array;
  /** The imports in use, as `module` and `name`. */
  readonly imports: readonly { readonly module: string; readonly name: string }[];
}

/** Reduces `module` to `exports`; `name` is for errors. */
export function reduceAdapter(name: string, module: Module, exports: ReadonlySet<string>): ReducedAdapter {
  if (module.elems.length > 0 || module.datas.length > 0 || module.memories.length > 0) {
    throw new InvalidError(
      `the adapter ${name} has a memory, data or elements of its own, which an adapter cannot have`,
    );
  }
  const kept = module.exports.filter((entry) => exports.has(entry.name));
  const live = liveFunctions(module, kept.flatMap(({ kind, index }) => kind === "func" ? [index] : []));
  const importedFuncs = module.imports.filter(({ desc }) => desc.kind === "func");
  const bodies = module.funcs.map((func, k) =>
    live.has(importedFuncs.length + k) ? func : { ...func, body: UNREACHABLE }
  );
  const customs = module.customs.filter((custom) => custom.name === "name");
  const reduced: Module = {
    ...module,
    funcs: bodies,
    exports: kept,
    customs,
    globals: [...module.globals],
    types: [...module.types],
    recGroups: [...module.recGroups],
  };
  const realloc = addStack(reduced);
  if (realloc !== undefined) live.add(realloc);
  const imports = module.imports.filter(({ desc }, at) => desc.kind !== "func" || live.has(funcIndex(module, at)));
  return { bytes: encodeModule(reduced), imports };
}

/** The function index of the import at `at`, which is a function. */
function funcIndex({ imports }: Module, at: number): number {
  return imports.slice(0, at).filter(({ desc }) => desc.kind === "func").length;
}

/** The instructions that refer to functions. */
const REFERRING: ReadonlySet<number> = new Set(
  OPCODES.flatMap(({ immediates }, id) => immediates.includes("func") ? [id] : []),
);

function liveFunctions(module: Module, roots: readonly number[]): Set<number> {
  const imported = module.imports.filter(({ desc }) => desc.kind === "func").length;
  const live = new Set(roots);
  // A set is iterated in the order of insertion, so functions that are added during the loop are visited.
  for (const index of live) {
    if (index < imported) continue;
    for (const callee of callees(module.funcs[index - imported])) live.add(callee);
  }
  return live;
}

function callees({ body }: Func): number[] {
  const reader = new CodeReader(body.bytes, 0, body.bytes.length, body.offset);
  reader.locals();
  const found: number[] = [];
  while (!reader.done) if (REFERRING.has(reader.next())) found.push(reader.imm.index);
  return found;
}

const UNREACHABLE = { bytes: Uint8Array.of(0, 0x00, 0x0b), offset: 0 };

/**
 * Makes every exported function allocate the stack first, if the adapter has a stack pointer. Returns the function that
 * allocates it.
 */
function addStack(module: Module): number | undefined {
  const pointer = globalNamed(module, "__stack_pointer");
  if (pointer === undefined) return undefined;
  const known = globalNamed(module, "allocation_state");
  const state = known ?? addGlobal(module);
  const realloc = (known === undefined ? undefined : importedRealloc(module)) ??
    addFunc(module, [I32, I32, I32, I32], [I32], GROW);
  const allocate = addFunc(module, [], [], allocateBody(state, pointer, realloc));
  module.exports = module.exports.map((entry) => {
    if (entry.kind !== "func") return entry;
    const { params, results } = signatureOf(module, entry.index);
    const index = addFunc(module, params, results, (out) => {
      out.u8(0x10);
      out.u32(allocate);
      params.forEach((_, k) => {
        out.u8(0x20);
        out.u32(k);
      });
      out.u8(0x10);
      out.u32(entry.index);
    });
    return { ...entry, index };
  });
  return realloc;
}

function globalNamed({ names, imports }: Module, name: string): number | undefined {
  if (imports.some(({ desc }) => desc.kind === "global")) return undefined;
  return [...names.globals].find(([, found]) => found === name)?.[0];
}

function addGlobal(module: Module): number {
  const init = { bytes: Uint8Array.of(0x41, 0, 0x0b), offset: 0 };
  return module.globals.push({ type: { type: I32, mutable: true }, init }) - 1;
}

function importedRealloc({ imports }: Module): number | undefined {
  const functions = imports.filter(({ desc }) => desc.kind === "func");
  const at = functions.findIndex(({ module, name }) => module === MAIN_MODULE && REALLOC_NAMES.includes(name));
  return at < 0 ? undefined : at;
}

/** The signature of a function. */
export function signatureOf(module: Module, index: number): FuncType {
  const functions = module.imports.flatMap(({ desc }) => desc.kind === "func" ? [desc.typeIndex] : []);
  const type = index < functions.length ? functions[index] : module.funcs[index - functions.length].typeIndex;
  const { composite } = module.types[type];
  if (composite.kind !== "func") throw new InvalidError("the type of a function is not a function type");
  return composite;
}

type Body = (out: ByteWriter) => void;

/** Appends a function without locals; returns its index. */
function addFunc(module: Module, params: readonly ValType[], results: readonly ValType[], write: Body): number {
  const out = new ByteWriter();
  out.u8(0);
  write(out);
  out.u8(0x0b);
  const composite: FuncType = { kind: "func", params: [...params], results: [...results] };
  const typeIndex = module.types.push({ final: true, supertypes: [], composite }) - 1;
  module.recGroups.push({ start: typeIndex, count: 1 });
  const imported = module.imports.filter(({ desc }) => desc.kind === "func").length;
  return imported + module.funcs.push({ typeIndex, body: { bytes: out.finish(), offset: 0 } }) - 1;
}

/** Allocates a page by growing the memory; traps if that fails. */
const GROW: Body = (out) => {
  out.raw(Uint8Array.of(0x41, 1, 0x40, 0, 0x22, 0, 0x41, 0x7f, 0x46, 0x04, 0x40, 0x00, 0x0b)); // memory.grow, or trap
  out.raw(Uint8Array.of(0x20, 0, 0x41, 16, 0x74)); // page << 16
};

/** Unless `state` is set: sets it to 1, allocates the stack, and sets it to 2. */
function allocateBody(state: number, pointer: number, realloc: number): Body {
  return (out) => {
    const global = (opcode: number, index: number) => {
      out.u8(opcode);
      out.u32(index);
    };
    const constant = (value: number) => {
      out.u8(0x41);
      out.s32(value);
    };
    global(0x23, state);
    out.raw(Uint8Array.of(0x45, 0x04, 0x40)); // i32.eqz if
    constant(1);
    global(0x24, state);
    [0, 0, 8, STACK_BYTES].forEach(constant);
    global(0x10, realloc);
    constant(STACK_BYTES);
    out.u8(0x6a); // i32.add
    global(0x24, pointer);
    constant(2);
    global(0x24, state);
    out.u8(0x0b);
  };
}
