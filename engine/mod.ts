/**
 * The waft engine: compiles WebAssembly to machine code and runs it in the current process.
 *
 * @module
 */
export {
  ArtifactError,
  Budget,
  collectGarbage,
  type CompilationReport,
  type Context,
  Delivery,
  Engine,
  type EngineLimits,
  type EngineOptions,
  type ExportDescriptor,
  type ExportValue,
  type FunctionReport,
  gcStatistics,
  host,
  type ImportDescriptor,
  Instance,
  InstancePool,
  type Machine,
  Memory,
  Module,
  NewEngine,
  ProcessorAccount,
  promising,
  type SharedMemoryToken,
  type SharedModuleToken,
  startCall,
  Suspension,
  Tag,
  underLimits,
  WasmException,
} from "./api/engine.ts";
export {
  Bug,
  ExhaustionError,
  InvalidError,
  LinkError,
  MalformedError,
  type SourcePlace,
  TrapError,
  type TrapFrame,
  UnprovenCodeError,
  UnsupportedError,
  WaftError,
} from "./base/errors.ts";
export { SystemError } from "./host/calls/system_error.ts";
export type { HostObjects } from "./api/engine.ts";
export type {
  Controls,
  ExportArguments,
  ExportedFunctionName,
  ExportKind,
  ExportResult,
  UnknownExportName,
} from "./api/module.ts";
export type { Profile, ProfiledFunction, ProfileFrame } from "./profile/profile.ts";
export type { ProfileOptions, Profiler } from "./profile/profiler.ts";
export type { ChosenSettings, CodeSettings, StackRule } from "./settings/code_settings.ts";
export type { NanRule } from "./settings/nans.ts";
export type { Settings, Tiering } from "./api/settings.ts";
export type { BoundaryFunction, CallRecorder, RecordedCall } from "./runtime/suspension/call_recorder.ts";
export type { BudgetOptions, Growth } from "./runtime/suspension/budget.ts";
export type { ControlContext } from "./runtime/suspension/call_limits.ts";
export type { ExternGlobal, ExternTable } from "./runtime/instance/externals.ts";
export type { Poolable } from "./runtime/instance/instance_pool.ts";
export type { Imports, InstanceLimits } from "./runtime/instance/instantiate.ts";
export { type CacheEntry, type CacheOptions, CodeCache } from "./cache/code_cache.ts";
export type { HeapStatistics } from "./gc/heap.ts";
export {
  ALL_FEATURE_ROWS,
  FEATURE_ROWS,
  type FeatureName,
  type FeatureRow,
  type FeatureSet,
  featureSet,
  PROPOSAL_ROWS,
} from "./settings/features.ts";
export {
  OPTIMIZATION_ROWS,
  type OptimizationName,
  type OptimizationRow,
  type OptimizationSet,
  optimizationSet,
} from "./settings/optimizations.ts";
