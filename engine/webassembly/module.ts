/**
 * WebAssembly.Module (JavaScript API, "Modules"): compiles bytes, with the options for JavaScript strings, and lists
 * their imports, exports and custom sections.
 */
import { decodeModule } from "../binary/decode.ts";
import { Engine, type EngineOptions, type Module as EngineModule } from "../api/engine.ts";
import { settingsOf } from "../api/settings.ts";
import type { CustomSection, ExternKind } from "../wasm/module.ts";
import { as, CompileError } from "./errors.ts";
import { bytesOf, defineInterface, requireObject, Slot } from "./interface.ts";
import {
  checkStringImports,
  NO_STRINGS,
  PROTOTYPES_MODULE,
  PROTOTYPES_OPTION,
  type StringOptions,
} from "./js_string.ts";

/** Internal state of a module. */
export interface ModuleInside {
  module: EngineModule;
  customs: readonly CustomSection[];
  strings: StringOptions;
}

/** Internal slots of modules. */
export const MODULES: Slot<Module, ModuleInside> = new Slot("Module");

/**
 * Maximum number of pages of a module's memory: all of a 32-bit memory, as in V8; the engine's limit applies to 64-bit
 * ones.
 */
const MAX_PAGES = 0x40000;

/**
 * Options for the modules of the namespace; they are a subset of an engine's options. The limits of memories and tables
 * also bind those that JavaScript makes.
 */
export type CompileOptions = Pick<
  EngineOptions,
  | "bounds"
  | "cache"
  | "features"
  | "fuel"
  | "fuelPrices"
  | "interruptible"
  | "limits"
  | "optimizations"
  | "parallel"
  | "perfMap"
  | "tier"
>;

/** The limits of all instances of the namespace. */
export function moduleLimits(): NonNullable<EngineOptions["limits"]> {
  return { maxMemoryPages: MAX_PAGES, ...options.limits };
}

/** The configured limits, which bind what JavaScript makes, too. */
export function configuredLimits(): NonNullable<EngineOptions["limits"]> {
  return options.limits ?? {};
}

/** The options of `configure`. */
let options: CompileOptions = {};

/** Created by the first compilation, because feature detection takes time. */
let engine: Engine | undefined;

/** The engine of the namespace's modules. */
export function theEngine(): Engine {
  return engine ??= new Engine({ ...options, limits: moduleLimits() });
}

/** Sets the options for the modules of the namespace. Throws an Error once a module exists, and those of NewEngine. */
export function configureModules(wanted: CompileOptions): void {
  if (engine !== undefined) throw new Error("configure() must be called before the first module is compiled");
  settingsOf(wanted);
  options = { ...wanted };
}

/** Reads `builtins` and `importedStringConstants` of the options of a compilation. */
export function readStringOptions(given: unknown, where: string): StringOptions {
  if (given === undefined || given === null) return NO_STRINGS;
  const { builtins, importedStringConstants } = requireObject(given, `${where}: the options`);
  const named = builtins === undefined || builtins === null ? [] : [...builtins as Iterable<unknown>].map(String);
  return {
    builtins: named.includes("js-string"),
    prototypes: named.includes(PROTOTYPES_OPTION) && options.features?.["custom-descriptors"] === true,
    constants: importedStringConstants === undefined || importedStringConstants === null
      ? undefined
      : String(importedStringConstants),
  };
}

/** Compiles bytes. Throws CompileError. */
export function compileBytes(bytes: Uint8Array<ArrayBuffer>, strings: StringOptions, where: string): ModuleInside {
  try {
    if (bytes.length === 0) throw new CompileError(`${where}: BufferSource argument is empty`);
    const parsed = decodeModule(bytes);
    checkStringImports(parsed, strings);
    const module = options.cache === undefined ? theEngine().compileParsed(parsed) : theEngine().compile(bytes);
    return { module, customs: parsed.customs, strings };
  } catch (error) {
    throw as(CompileError, error, where);
  }
}

/** Whether the bytes are those of a valid module. */
export function isValid(bytes: Uint8Array<ArrayBuffer>, strings: StringOptions): boolean {
  try {
    const parsed = decodeModule(bytes);
    checkStringImports(parsed, strings);
    theEngine().validateParsed(parsed);
    return true;
  } catch {
    return false;
  }
}

/** The object of a compiled module. */
export function moduleObject(inside: ModuleInside): Module {
  return MODULES.outerOf(inside, Module.prototype);
}

/** External kinds as the JavaScript API names them. */
const KINDS: Readonly<Record<ExternKind, string>> = {
  func: "function",
  table: "table",
  memory: "memory",
  global: "global",
  tag: "tag",
};

/** The types in lists of imports and exports; `shown` makes them, if type reflection is on. */
export const externTypes: { shown: ((kind: ExternKind, type: unknown) => object) | undefined } = { shown: undefined };

/** The property `type` of an entry, if type reflection is on. */
function shownType(kind: ExternKind, types: readonly unknown[], index: number): { type?: object } {
  return externTypes.shown === undefined ? {} : { type: externTypes.shown(kind, types[index]) };
}

/** A compiled module. */
export class Module {
  constructor(bytes: unknown, ...options: unknown[]) {
    const where = "WebAssembly.Module()";
    const copy = bytesOf(bytes, where);
    MODULES.put(this, compileBytes(copy, readStringOptions(options[0], where), where));
  }

  /** The exports of a module, in order. */
  static exports(module: unknown): { name: string; kind: string }[] {
    const { module: inner } = MODULES.require(module, "WebAssembly.Module.exports(): the first argument");
    const types = inner.externTypes("exports");
    return inner.exports.map(({ name, kind }, i) => ({ name, kind: KINDS[kind], ...shownType(kind, types, i) }));
  }

  /** The imports of a module, in order, without those that its compile options provide. */
  static imports(module: unknown): { module: string; name: string; kind: string }[] {
    const { module: inner, strings } = MODULES.require(module, "WebAssembly.Module.imports(): the first argument");
    const types = inner.externTypes("imports");
    return inner.imports
      .map(({ module, name, kind }, i) => ({ module, name, kind: KINDS[kind], ...shownType(kind, types, i) }))
      .filter((entry) => !isProvided(strings, entry.module));
  }

  /** Copies of the custom sections called `name`. */
  static customSections(module: unknown, name: unknown): ArrayBuffer[] {
    const where = "WebAssembly.Module.customSections()";
    const { customs } = MODULES.require(module, `${where}: the first argument`);
    if (name === undefined) throw new TypeError(`${where}: the second argument is required`);
    const wanted = String(name);
    return customs.filter((section) => section.name === wanted).map(({ bytes }) => bytes.slice().buffer as ArrayBuffer);
  }
}

/** Whether the module's options provide its imports from `namespace`. */
export function isProvided(strings: StringOptions, namespace: string): boolean {
  return (strings.builtins && namespace === "wasm:js-string") || namespace === strings.constants ||
    (strings.prototypes === true && namespace === PROTOTYPES_MODULE);
}

defineInterface("Module", Module);
inheritSource();

/**
 * Makes Module inherit from %AbstractModuleSource% where the host's own does, whose accessor of the tag then knows the
 * modules of the namespace, too.
 */
function inheritSource(): void {
  const own = (globalThis as { WebAssembly?: { Module?: object } }).WebAssembly?.Module;
  const source = own === undefined ? null : Object.getPrototypeOf(own) as { readonly prototype?: object } | null;
  if (source === null || source === Function.prototype || typeof source.prototype !== "object") return;
  Object.setPrototypeOf(Module, source);
  Object.setPrototypeOf(Module.prototype, source.prototype);
  const tag = Object.getOwnPropertyDescriptor(source.prototype, Symbol.toStringTag);
  const get = tag?.get;
  if (get === undefined || tag?.configurable !== true) return;
  const tagOf = {
    get [Symbol.toStringTag](): unknown {
      return MODULES.of(this) === undefined ? get.call(this) : "WebAssembly.Module";
    },
  };
  const accessor = Object.getOwnPropertyDescriptor(tagOf, Symbol.toStringTag)!;
  Object.defineProperty(source.prototype, Symbol.toStringTag, { ...tag, get: accessor.get! });
}
