/**
 * waft for programs: the engine, projects with their plugins, and the version of this build.
 *
 * @module
 */
export * from "@waft/engine";
export { type GuestOptions, openProject, Project, type ProjectOptions } from "./project/ops/project/open_project.ts";
export {
  type Guest,
  type GuestRun,
  type HostOptions,
  InstanceGraph,
  PluginHost,
  pluginOf,
} from "./project/plugins/plugin_host.ts";
export { type LoadedProject, type LoadOptions, loadProject } from "./project/plugins/load.ts";
export { type ContextChoices, makeContext, type OpsContext } from "./project/packages/context.ts";
export { type Diagnostic, EXIT, type ExitCode, ProjectError, type Severity } from "./project/base/diagnostic.ts";
export type { Digest } from "./project/base/integrity.ts";
export { inspectModule, inspectPlugin } from "./project/definitions/engine_inspector.ts";
export type {
  ExternKind,
  FunctionType,
  InspectedFunction,
  InspectedModule,
  InspectedWorld,
  ModuleExport,
  ModuleImport,
  ModuleInspector,
  WorldItem,
} from "./project/definitions/module_inspector.ts";
export { VERSION } from "./project/base/version_string.ts";
