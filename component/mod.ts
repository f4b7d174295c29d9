/**
 * Components: WebAssembly components on waft's engine.
 *
 * @module
 */
export { compileComponent, Component, ComponentInstance } from "./component.ts";
export { ComponentError } from "./abi/traps.ts";
export type { ComponentImports } from "./link/host_imports.ts";
export type { HostExports } from "./link/host_exports.ts";
