/**
 * Cached modules. In: the cache key of a module, settings and a cache. Out: the loaded module on a hit. Invariant: this
 * file imports no part of the compiler.
 */
import { errorCode } from "../base/errors.ts";
import { codeSettings } from "../settings/code_settings.ts";
import { artifactIn, type CodeCache, engineKey } from "../cache/code_cache.ts";
import { sourceStamp } from "../cache/source_stamp.ts";
import { featureSet } from "../settings/features.ts";
import { cpuFeatures } from "../host/cpu.ts";
import { currentHost } from "../host/current.ts";
import { ArtifactError } from "./format.ts";
import { engineStamp } from "./engine_stamp.ts";
import { hasStoreCompiler, realmStore, setStoredCollector } from "../runtime/realm_store.ts";
import { optimizationSet } from "../settings/optimizations.ts";
import { guardsShared } from "../runtime/memory/memory.ts";
import { hasGuardRoom } from "../runtime/memory/memory_range.ts";
import { type CodeOptions, machineName, optionNames } from "./description.ts";
import { type LoadedModule, loadModuleFile } from "./read_module.ts";
import type { Settings } from "../api/settings.ts";
import type { Module as WasmModule } from "../wasm/module.ts";

/**
 * Whether the bytes are treated as a binary module rather than text: a binary module begins with a zero byte, with
 * which no text begins. Empty input counts as binary.
 */
export function looksBinary(bytes: Uint8Array): boolean {
  return bytes.length === 0 || bytes[0] === 0;
}

/**
 * The text of a module, or its bytes from any buffer type. Throws TypeError for other values, which untyped programs
 * may pass.
 */
export function sourceOf(source: unknown): string | Uint8Array {
  if (typeof source === "string" || source instanceof Uint8Array) return source;
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  const tag = Object.prototype.toString.call(source).slice(8, -1);
  if (tag === "ArrayBuffer" || tag === "SharedArrayBuffer") return new Uint8Array(source as ArrayBuffer);
  const what = tag === "Promise" ? "a promise: await it" : tag.toLowerCase();
  throw new TypeError(`A module must be bytes (a Uint8Array or an ArrayBuffer) or text, not ${what}`);
}

/** The inputs besides the module's bytes that determine its code. */
export function codeFacts(settings: Settings): string[] {
  const host = currentHost();
  return [
    engineStamp(),
    sourceStamp(),
    machineName(host),
    settings.bounds,
    settings.tier === "baseline" ? "baseline" : "optimizing",
    String(settings.bounds === "auto" && !hasGuardRoom(host)),
    ...cpuFeatures(host),
    ...optionNames(settings),
  ];
}

/** Whether `module` needs code with explicit bounds checks under these settings on this host. */
export function wantsExplicit(settings: Settings, module: WasmModule): boolean {
  const host = currentHost();
  return settings.bounds === "explicit" || (hasSharedMemory(module) && !guardsShared(host)) ||
    (settings.bounds === "auto" && !hasGuardRoom(host));
}

/** Whether `module` defines or imports a shared memory. */
function hasSharedMemory(module: WasmModule): boolean {
  return module.memories.some(({ shared }) => shared) ||
    module.imports.some(({ desc }) => desc.kind === "memory" && desc.type.shared);
}

/** Thrown if running the module requires code that only a compiler can make. */
export class NeedsCompiler extends Error {}

/** The code options of the collector. */
export const COLLECTOR_OPTIONS: CodeOptions = {
  features: featureSet(),
  optimizations: optimizationSet(),
  ...codeSettings(),
};

/** The cache key of the collector's code. */
export function collectorKey(): string {
  const host = currentHost();
  return engineKey("collector", [engineStamp(), sourceStamp(), machineName(host), ...cpuFeatures(host)]);
}

/** Whether the module has struct or array types, whose objects are garbage-collected. */
export function hasObjects({ types }: WasmModule): boolean {
  return types.some(({ composite }) => composite.kind !== "func");
}

/** Extracts the artifact from a cache file, which must have been written for this key. */
function ownArtifact(key: string): (file: Uint8Array) => Uint8Array {
  return (file) => {
    const artifact = artifactIn(file, key);
    if (artifact === undefined) throw new ArtifactError("The cache file belongs to another module");
    return artifact;
  };
}

/** Loads the collector from the cache, which stores it together with modules that need it. Returns false on a miss. */
export function loadCachedCollector(cache: CodeCache): boolean {
  const key = collectorKey();
  const path = cache.find(key);
  if (path === undefined) return false;
  try {
    const { compiled } = loadModuleFile(realmStore, path, COLLECTOR_OPTIONS, () => false, ownArtifact(key));
    compiled.internal = true;
    setStoredCollector(compiled);
    return true;
  } catch (error) {
    if (error instanceof ArtifactError) cache.remove(key);
    else if (!isSystemError(error)) throw error;
    return false;
  }
}

/**
 * Loads the module cached under `key`; undefined on a miss, or if it cannot run in this process. Removes a damaged
 * artifact from the cache.
 */
export function loadCached(cache: CodeCache, key: string, settings: Settings): LoadedModule | undefined {
  const path = cache.find(key);
  if (path === undefined) return undefined;
  try {
    return loadModuleFile(realmStore, path, settings, (valid) => {
      if (hasObjects(valid) && !hasStoreCompiler() && cache.find(collectorKey()) === undefined) {
        throw new NeedsCompiler("The garbage collector must be compiled");
      }
      return wantsExplicit(settings, valid);
    }, ownArtifact(key));
  } catch (error) {
    if (error instanceof NeedsCompiler) return undefined;
    if (error instanceof ArtifactError) cache.remove(key);
    else if (!isSystemError(error)) throw error; // a system error is a miss: another process may have removed the file
    return undefined;
  }
}

/** Keys that this process has marked. */
const MARKED_HERE = new Set<string>();

/**
 * Marks the key of a module that is about to run with baseline code only. True if an earlier process has done so: the
 * module is used repeatedly, but has never run for long enough to be optimized, so optimizing it now pays.
 */
export function wasMarked(cache: CodeCache, key: string): boolean {
  if (MARKED_HERE.has(key)) return false;
  MARKED_HERE.add(key);
  return cache.mark(key);
}

/** True for errors of the operating system as `node:fs` throws them. */
function isSystemError(error: unknown): boolean {
  return error instanceof Error && errorCode(error) !== undefined;
}
