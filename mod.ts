/**
 * waft for programs: the engine, projects with their plugins, and the version of this build.
 *
 * @module
 */
export * from "@waft/engine";
export { type GuestOptions, openProject, Project, type ProjectOptions } from "./project/open_project.ts";
export { type Guest, type HostOptions, InstanceGraph, PluginHost, pluginOf } from "./project/plugin_host.ts";
export { type LoadedProject, type LoadOptions, loadProject } from "./project/ops/load.ts";
export { type ContextChoices, makeContext, type OpsContext } from "./project/ops/context.ts";
export { type Diagnostic, ProjectError } from "./project/diagnostic.ts";
export { inspectModule } from "./project/engine_inspector.ts";
export { VERSION } from "./project/version_string.ts";
