/**
 * Opening a module from the cache without loading the compiler. In: the bytes of a module, engine options. Out: the
 * module, if the cache of those options has it. Invariant: this file imports nothing of the compiler.
 */
import { codeFacts, hasObjects, loadCached, loadCachedCollector, looksBinary } from "./artifact/find_module.ts";
import { cacheKeyAsync, CodeCache } from "./cache/code_cache.ts";
import { Module } from "./module.ts";
import { hasStoreCompiler, realmStore } from "./runtime/realm_store.ts";
import { type EngineOptions, settingsOf } from "./settings.ts";

/**
 * The module that `NewEngine(options).compile(bytes)` would give, when the cache of `options` has it, and the collector if it has structures
 * or arrays, which nobody may be there to compile; else undefined. It has no second form for when there is no address space for guard pages any more.
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
