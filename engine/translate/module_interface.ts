/**
 * The facts about a module that stubs, thunks and both compilers of bodies share: the layout of the VM context and the
 * signatures, one id per distinct list of IR types. In: a ValidModule, whose bodies are not read. Out: a
 * ModuleInterface. Invariant: ids depend on the module alone: those of its types come first, then those of builtins.
 */
import { BUILTIN_ROWS } from "../abi/builtins.ts";
import { type ContextLayout, layoutContext } from "../abi/context_layout.ts";
import type { Signature } from "../ir/types.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { tyOf } from "../wasm/ir_types.ts";
import { stringImports } from "../wasm/string_imports.ts";
import type { FuncType } from "../wasm/types.ts";

export interface ModuleInterface {
  readonly layout: ContextLayout;
  /** Signatures by id. */
  readonly signatures: readonly Signature[];
  /**
   * Signature id by type index, that of the function type for continuations; −1 for types that are neither.
   */
  readonly typeSignature: Int32Array;
  /** Signature id by function index, imports included. */
  readonly funcSignature: Int32Array;
  /** Signature id by defined function index, the form that code generation takes. */
  readonly functionSignature: Int32Array;
  /** Signature id by builtin number. */
  readonly builtinSignature: Int32Array;
  /** By memory index: true for a shared memory, whose length is in a word outside the context. */
  readonly memoryIsShared: readonly boolean[];
  /** By string builtin: index of the imported function that names it, or −1 (string_imports.ts). */
  readonly strings: Int32Array;
}

/** Assigns one id to equal lists of IR types. */
class SignatureTable {
  readonly signatures: Signature[] = [];
  readonly #ids: Map<string, number> = new Map();

  idOf(params: readonly number[], results: readonly number[]): number {
    const key = `${params.join("")}_${results.join("")}`;
    let id = this.#ids.get(key);
    if (id === undefined) {
      id = this.signatures.length;
      this.signatures.push({ params: Uint8Array.from(params), results: Uint8Array.from(results) });
      this.#ids.set(key, id);
    }
    return id;
  }

  ofType(type: FuncType): number {
    return this.idOf(type.params.map(tyOf), type.results.map(tyOf));
  }
}

/** Computes the interface of a module. */
export function moduleInterface(valid: ValidModule): ModuleInterface {
  const strings = stringImports(valid);
  const layout = layoutContext({
    memories: valid.memoryTypes.length,
    tables: valid.tableTypes.length,
    globals: valid.globalTypes.length,
    importedFuncs: valid.importedFuncCount,
    definedFuncs: valid.funcs.length,
    types: valid.types.length,
    tags: valid.tagTypes.length,
    shared: valid.memoryTypes.some(({ shared }) => shared),
    ...(strings.some((index) => index >= 0) ? { strings: true } : {}),
  });
  layout.knownTables = [];
  const table = new SignatureTable();
  const typeSignature = Int32Array.from(valid.types, ({ composite }) => {
    const type = composite.kind === "cont" ? valid.types[composite.func].composite : composite;
    return type.kind === "func" ? table.ofType(type) : -1;
  });
  const funcSignature = Int32Array.from(valid.funcTypeIndices, (index) => typeSignature[index]);
  return {
    layout,
    signatures: table.signatures,
    typeSignature,
    funcSignature,
    functionSignature: funcSignature.slice(valid.importedFuncCount),
    builtinSignature: Int32Array.from(BUILTIN_ROWS, (row) => table.idOf(row.params, row.results)),
    memoryIsShared: valid.memoryTypes.map(({ shared }) => shared),
    strings,
  };
}
