/**
 * Opens compiled modules without loading the compiler. In: the bytes of a module and engine options, or an artifact.
 * Out: the module; nothing if it is not in the cache, or needs the compiler. Invariant: this file imports no part of
 * the compiler.
 */
import {
  codeFacts,
  hasObjects,
  loadCached,
  loadCachedCollector,
  looksBinary,
  NeedsCompiler,
  wantsExplicit,
} from "../artifact/find_module.ts";
import { loadModule } from "../artifact/read_module.ts";
import { cacheKeyAsync, CodeCache } from "../cache/code_cache.ts";
import { Module } from "./module.ts";
import { hasStoreCompiler, realmStore } from "../runtime/realm_store.ts";
import { type EngineOptions, requireLoading, settingsOf } from "./settings.ts";

/**
 * Returns the module that `NewEngine(options).compile(bytes)` would return, if the cache of `options` contains it, and
 * also the collector if the module has struct or array types; otherwise undefined. Without the compiler there is no
 * explicit-bounds fallback: the module cannot be instantiated once address space for guard pages is exhausted.
 *
 * Throws for options that exclude each other, as the constructor of engines does.
 */
export async function openCachedModule(
  bytes: Uint8Array<ArrayBuffer>,
  options: EngineOptions,
): Promise<Module | undefined> {
  const settings = settingsOf(options);
  const { cache: directory, perfMap, verify } = options;
  if (directory === undefined || perfMap === true || verify === "code" || !looksBinary(bytes)) return undefined;
  const key = await cacheKeyAsync(bytes, codeFacts(settings));
  const cache = new CodeCache(directory);
  const loaded = loadCached(cache, key, settings);
  if (loaded === undefined) return undefined;
  if (hasObjects(loaded.compiled.valid) && !hasStoreCompiler() && !loadCachedCollector(cache)) return undefined;
  return new Module(realmStore(), loaded.compiled, loaded.statistics, settings);
}

/**
 * Loads an artifact as `NewEngine(options).load(artifact)` does. Returns undefined if its module has struct or array
 * types, because those need the collector, which must be compiled.
 *
 * An artifact is machine code, which is not checked: its source must be trusted. Throws ArtifactError.
 */
export function openArtifact(artifact: Uint8Array, options: EngineOptions): Module | undefined {
  const settings = settingsOf(options);
  requireLoading(options);
  try {
    const { compiled, statistics } = loadModule(realmStore, artifact, settings, (valid) => {
      // Ends the load before anything is placed in memory.
      if (hasObjects(valid) && !hasStoreCompiler()) throw new NeedsCompiler();
      return wantsExplicit(settings, valid);
    });
    return new Module(realmStore(), compiled, statistics, settings);
  } catch (error) {
    if (error instanceof NeedsCompiler) return undefined;
    throw error;
  }
}
