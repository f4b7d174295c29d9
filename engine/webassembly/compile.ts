/**
 * The operations of the namespace: validate, compile, instantiate and their streaming forms (JavaScript API,
 * "WebAssembly Namespace"; Web API). Invariant: those that return promises never throw. Compilation itself is
 * synchronous, on this thread.
 */
import { bytesOf } from "./interface.ts";
import { type Instance, instanceObject, readImports } from "./instance.ts";
import { compileBytes, isValid, type Module, moduleObject, MODULES, readStringOptions } from "./module.ts";
import type { StringOptions } from "./js_string.ts";

/** A module and its instance. */
interface InstantiatedSource {
  module: Module;
  instance: Instance;
}

/** The operations, as methods: an operation of a Web IDL namespace is not a constructor. */
export const OPERATIONS = {
  /** Whether these are the bytes of a valid module. */
  validate(bytes: unknown, ...options: unknown[]): boolean {
    const where = "WebAssembly.validate()";
    return isValid(bytesOf(bytes, where), readStringOptions(options[0], where));
  },

  /** Compiles a module. */
  compile(bytes: unknown, ...options: unknown[]): Promise<Module> {
    const where = "WebAssembly.compile()";
    return settle(() => {
      const copy = bytesOf(bytes, where);
      const strings = readStringOptions(options[0], where);
      return later(() => moduleObject(compileBytes(copy, strings, where)));
    });
  },

  /** Makes an instance of a module, or compiles bytes first. */
  instantiate(source: unknown, ...rest: unknown[]): Promise<Instance | InstantiatedSource> {
    const where = "WebAssembly.instantiate()";
    const [importObject, options] = rest;
    return settle<Instance | InstantiatedSource>(() => {
      checkImportObject(importObject, where);
      const inside = MODULES.of(source);
      if (inside !== undefined) {
        const imports = readImports(inside, importObject, where);
        return later(() => instanceObject(inside, imports, where));
      }
      const copy = bytesOf(source, where);
      const strings = readStringOptions(options, where);
      return later(() => both(copy, strings, importObject, where));
    });
  },

  /** Compiles a server's response. */
  compileStreaming(source: unknown, ...options: unknown[]): Promise<Module> {
    const where = "WebAssembly.compileStreaming()";
    return settle(async () => {
      const strings = readStringOptions(options[0], where);
      const bytes = await received(source, where);
      return moduleObject(compileBytes(bytes, strings, where));
    });
  },

  /** Compiles and instantiates a server's response. */
  instantiateStreaming(source: unknown, ...rest: unknown[]): Promise<InstantiatedSource> {
    const where = "WebAssembly.instantiateStreaming()";
    const [importObject, options] = rest;
    return settle(async () => {
      checkImportObject(importObject, where);
      const strings = readStringOptions(options, where);
      return both(await received(source, where), strings, importObject, where);
    });
  },
};

/** Runs `action`; an error that it throws becomes a rejection. */
function settle<T>(action: () => Promise<T>): Promise<T> {
  try {
    return action();
  } catch (error) {
    return rejected(error);
  }
}

/** A rejected promise of the realm, whatever the program has put into the global Promise. */
// deno-lint-ignore require-await
async function rejected(error: unknown): Promise<never> {
  throw error;
}

/** Runs `action` in a microtask, after the caller has finished. */
async function later<T>(action: () => T): Promise<T> {
  await undefined;
  return action();
}

function checkImportObject(importObject: unknown, where: string): void {
  if (
    importObject !== undefined &&
    (typeof importObject !== "object" && typeof importObject !== "function" || importObject === null)
  ) {
    throw new TypeError(`${where}: the second argument must be an object`);
  }
}

function both(
  bytes: Uint8Array<ArrayBuffer>,
  strings: StringOptions,
  importObject: unknown,
  where: string,
): InstantiatedSource {
  const inside = compileBytes(bytes, strings, where);
  return {
    module: moduleObject(inside),
    instance: instanceObject(inside, readImports(inside, importObject, where), where),
  };
}

/** The bytes of a Response. Throws TypeError unless it succeeded and has the content type of a module. */
async function received(source: unknown, where: string): Promise<Uint8Array<ArrayBuffer>> {
  const response = await source;
  if (typeof Response !== "function" || !(response instanceof Response)) {
    throw new TypeError(`${where}: the first argument must be a Response or a promise of one`);
  }
  const type = (response.headers.get("content-type") ?? "").trim().toLowerCase();
  if (type !== "application/wasm") {
    throw new TypeError(`${where}: the content type must be application/wasm, not "${type}"`);
  }
  if (!response.ok) throw new TypeError(`${where}: the response has status ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}
