/**
 * Modules from the cache of compiled ones. In: the bytes of a module, settings, the cache. Out: the module, if the cache has it. Invariant: nothing of the
 * compiler is loaded for it.
 */
import { artifactIn, type CodeCache, engineKey } from "../cache/code_cache.ts";
import { sourceStamp } from "../cache/source_stamp.ts";
import { featureSet } from "../features.ts";
import { cpuFeatures } from "../host/cpu.ts";
import { currentHost } from "../host/current.ts";
import { ArtifactError } from "./format.ts";
import { engineStamp } from "./engine_stamp.ts";
import { hasStoreCompiler, realmStore, setStoredCollector } from "../runtime/realm_store.ts";
import { optimizationSet } from "../optimizations.ts";
import { guardsShared } from "../runtime/memory/memory.ts";
import { hasGuardRoom } from "../runtime/memory/memory_range.ts";
import { type CodeOptions, machineName, optionNames } from "./description.ts";
import { type LoadedModule, loadModuleFile } from "./read_module.ts";
import type { Settings } from "../settings.ts";
import type { Module as WasmModule } from "../wasm/module.ts";

/** Binary modules begin with a zero byte, which no text contains. */
export function looksBinary(bytes: Uint8Array): boolean {
  return bytes.length === 0 || bytes[0] === 0;
}

/** A module's text, or its bytes whatever they lie in. Throws TypeError for anything else, which programs without types may give. */
export function sourceOf(source: unknown): string | Uint8Array {
  if (typeof source === "string" || source instanceof Uint8Array) return source;
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  const tag = Object.prototype.toString.call(source).slice(8, -1);
  if (tag === "ArrayBuffer" || tag === "SharedArrayBuffer") return new Uint8Array(source as ArrayBuffer);
  const what = tag === "Promise" ? "a promise: await it" : tag.toLowerCase();
  throw new TypeError(`A module is bytes (a Uint8Array or an ArrayBuffer) or its text, not ${what}`);
}

/** What decides the code of a module besides its bytes. */
export function codeFacts(settings: Settings): string[] {
  const host = currentHost();
  return [
    engineStamp(),
    sourceStamp(),
    machineName(host),
    settings.bounds,
    settings.tier,
    String(settings.bounds === "auto" && !hasGuardRoom(host)),
    ...cpuFeatures(host),
    ...optionNames(settings),
  ];
}

/** Is code with explicit bounds the one to use for `module`? */
export function wantsExplicit(settings: Settings, module: WasmModule): boolean {
  const host = currentHost();
  return settings.bounds === "explicit" || (hasSharedMemory(module) && !guardsShared(host)) ||
    (settings.bounds === "auto" && !hasGuardRoom(host));
}

/** Does `module` define or import a shared memory? */
function hasSharedMemory(module: WasmModule): boolean {
  return module.memories.some(({ shared }) => shared) ||
    module.imports.some(({ desc }) => desc.kind === "memory" && desc.type.shared);
}

/** Only a compiler can make what the module needs when it runs. */
class NeedsCompiler extends Error {}

/** What the collector is compiled with. */
export const COLLECTOR_OPTIONS: CodeOptions = {
  features: featureSet(),
  optimizations: optimizationSet(),
  interruptible: false,
  fuel: false,
  deterministic: false,
};

/** The key of the collector's code. */
export function collectorKey(): string {
  const host = currentHost();
  return engineKey("collector", [engineStamp(), sourceStamp(), machineName(host), ...cpuFeatures(host)]);
}

/** Has the module structures or arrays, which are collected? */
export function hasObjects({ types }: WasmModule): boolean {
  return types.some(({ composite }) => composite.kind !== "func");
}

/** Takes the artifact out of a file of the cache, which must have been written for this key. */
function ownArtifact(key: string): (file: Uint8Array) => Uint8Array {
  return (file) => {
    const artifact = artifactIn(file, key);
    if (artifact === undefined) throw new ArtifactError("The file in the cache belongs to another module");
    return artifact;
  };
}

/** Takes the collector from the cache, where it is kept with modules that need it. Returns whether it was there. */
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

/** What the cache has under `key` and can be run as things are. What is damaged is removed from it. */
export function loadCached(cache: CodeCache, key: string, settings: Settings): LoadedModule | undefined {
  const path = cache.find(key);
  if (path === undefined) return undefined;
  try {
    return loadModuleFile(realmStore, path, settings, (valid) => {
      if (hasObjects(valid) && !hasStoreCompiler() && cache.find(collectorKey()) === undefined) {
        throw new NeedsCompiler("The collector has to be compiled");
      }
      return wantsExplicit(settings, valid);
    }, ownArtifact(key));
  } catch (error) {
    if (error instanceof NeedsCompiler) return undefined;
    if (error instanceof ArtifactError) cache.remove(key);
    else if (!isSystemError(error)) throw error; // what the system refuses is a miss: another process may have removed it
    return undefined;
  }
}

/** An error of the operating system, as `node:fs` throws it? */
function isSystemError(error: unknown): boolean {
  return error instanceof Error && typeof (error as { code?: unknown }).code === "string";
}
