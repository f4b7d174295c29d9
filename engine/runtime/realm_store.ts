/**
 * The store of this JavaScript realm, made by the first compilation, load or instantiation. In: the code of a process and who compiles the collector;
 * the compiler gives them when it is loaded (engine.ts). An artifact has the former as well, so that what it holds runs without a compiler.
 * Invariant: one store per realm.
 */
import { Bug } from "../errors.ts";
import type { CompiledModule } from "./code/compiled_module.ts";
import type { ProcessCode } from "./thread/guest_thread.ts";
import { Store } from "./instance/store.ts";
import { collectorCode, stringCode } from "./intrinsics.ts";

/** What the compiler does for a store. */
export interface StoreCompiler {
  processCode(): ProcessCode;
  /** Compiles and adds the module of gc/collector_code.ts. */
  compileCollector(store: Store): CompiledModule;
  /** Compiles and adds the module of runtime/strings/string_code.ts. */
  compileStrings(store: Store): CompiledModule;
}

let compiler: StoreCompiler | undefined;
let storedCollector: CompiledModule | undefined;
let store: Store | undefined;

/** Says who compiles for the store of this realm. */
export function setStoreCompiler(given: StoreCompiler): void {
  compiler = given;
}

/** Gives the collector as it was compiled before, for when nobody can compile it. */
export function setStoredCollector(module: CompiledModule): void {
  storedCollector = module;
}

/** Can what a store needs be compiled? */
export function hasStoreCompiler(): boolean {
  return compiler !== undefined;
}

/** The store of this realm. `code` is for when there is neither a store nor a compiler yet. */
export function realmStore(code?: ProcessCode): Store {
  return store ??= makeStore(compiler?.processCode() ?? code);
}

function makeStore(code: ProcessCode | undefined): Store {
  if (code === undefined) throw new Bug("The machine code of a process needs a compiler or an artifact");
  return new Store(code, {
    collector: (store, control) => collectorCode(store, collectorModule(store), control),
    strings: (store, control, services) => stringCode(store, stringModule(store), control, services),
  });
}

/** The compiled collector (gc/collector_code.ts) of `store`. */
export function collectorModule(store: Store): CompiledModule {
  const module = compiler?.compileCollector(store) ?? storedCollector;
  if (module === undefined) throw new Bug("The collector is neither compiled nor cached");
  return module;
}

function stringModule(store: Store): CompiledModule {
  if (compiler === undefined) throw new Bug("The string builtins need a compiler");
  return compiler.compileStrings(store);
}
