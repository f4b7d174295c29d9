/**
 * waft's engine: compiles WebAssembly to machine code and runs it in this process.
 *
 * @module
 */
export {
  ArtifactError,
  collectGarbage,
  type Context,
  Engine,
  type EngineLimits,
  type EngineOptions,
  type ExportDescriptor,
  type ExportValue,
  gcStatistics,
  host,
  type ImportDescriptor,
  Instance,
  InstancePool,
  Memory,
  Module,
  NewEngine,
  promising,
  type SharedMemoryToken,
  type SharedModuleToken,
  Tag,
  WasmException,
} from "./engine.ts";
export {
  Bug,
  ExhaustionError,
  InvalidError,
  LinkError,
  MalformedError,
  type SourcePlace,
  TrapError,
  type TrapFrame,
  UnsupportedError,
  WaftError,
} from "./errors.ts";
export { type CacheEntry, type CacheOptions, CodeCache } from "./cache/code_cache.ts";
export type { HeapStatistics } from "./gc/heap.ts";
export { FEATURE_ROWS, type FeatureName, type FeatureRow, featureSet } from "./features.ts";
export { OPTIMIZATION_ROWS, type OptimizationName, type OptimizationRow, optimizationSet } from "./optimizations.ts";
