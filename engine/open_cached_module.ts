/**
 * Opens a module from the cache without loading the compiler. In: the bytes of a module and engine options. Out: the
 * module on a cache hit. Invariant: this file imports no part of the compiler.
 */
import { codeFacts, hasObjects, loadCached, loadCachedCollector, looksBinary } from "./artifact/find_module.ts";
import { cacheKeyAsync, CodeCache } from "./cache/code_cache.ts";
import { Module } from "./module.ts";
import { hasStoreCompiler, realmStore } from "./runtime/realm_store.ts";
import { type EngineOptions, settingsOf } from "./settings.ts";

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
  if (options.cache === undefined || options.perfMap === true || !looksBinary(bytes)) return undefined;
  const key = await cacheKeyAsync(bytes, codeFacts(settings));
  const cache = new CodeCache(options.cache);
  const loaded = loadCached(cache, key, settings);
  if (loaded === undefined) return undefined;
  if (hasObjects(loaded.compiled.valid) && !hasStoreCompiler() && !loadCachedCollector(cache)) return undefined;
  return new Module(realmStore(), loaded.compiled, loaded.statistics, settings);
}
