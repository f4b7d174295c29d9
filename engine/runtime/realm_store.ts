/**
 * The store of this JavaScript realm, created by the first compilation, load or instantiation. In: the process code,
 * and the compiler for intrinsic modules, which engine.ts registers when it is loaded. An artifact also contains the
 * process code, so that its module runs without a compiler. Invariant: one store per realm.
 */
import { Bug } from "../base/errors.ts";
import { currentHost } from "../host/current.ts";
import type { CompiledModule } from "./code/compiled_module.ts";
import type { ProcessCode } from "./thread/process_entry.ts";
import { Store } from "./instance/store.ts";
import { collectorCode, stringCode } from "./intrinsics.ts";

/** The services of the compiler for a store. */
interface StoreCompiler {
  processCode(): ProcessCode;
  /** Compiles and adds the module of gc/collector_code.ts. */
  compileCollector(store: Store): CompiledModule;
  /** Compiles and adds the module of runtime/strings/string_code.ts. */
  compileStrings(store: Store): CompiledModule;
}

let compiler: StoreCompiler | undefined;
let storedCollector: CompiledModule | undefined;
let store: Store | undefined;

/** Registers the compiler for the store of this realm. */
export function setStoreCompiler(given: StoreCompiler): void {
  compiler = given;
}

/** Sets a collector that was compiled earlier, for use without a compiler. */
export function setStoredCollector(module: CompiledModule): void {
  storedCollector = module;
}

/** Whether intrinsic modules can be compiled. */
export function hasStoreCompiler(): boolean {
  return compiler !== undefined;
}

/**
 * Returns the store of this realm. `code` is used if there is neither a store nor a compiler yet. Throws SystemError
 * if the system has no memory for it; the next call tries again.
 */
export function realmStore(code?: ProcessCode): Store {
  return store ??= currentHost().releasingOnError(() => makeStore(compiler?.processCode() ?? code));
}

function makeStore(code: ProcessCode | undefined): Store {
  if (code === undefined) throw new Bug("A store requires process code from a compiler or an artifact");
  return new Store(code, {
    collector: (store, control) => collectorCode(store, collectorModule(store), control),
    strings: (store, control, services) => stringCode(store, stringModule(store), control, services),
  });
}

/** The compiled collector (gc/collector_code.ts) of `store`. */
export function collectorModule(store: Store): CompiledModule {
  const module = compiler?.compileCollector(store) ?? storedCollector;
  if (module === undefined) throw new Bug("The garbage collector is neither compiled nor cached");
  return module;
}

function stringModule(store: Store): CompiledModule {
  if (compiler === undefined) throw new Bug("The string builtins require a compiler");
  return compiler.compileStrings(store);
}
