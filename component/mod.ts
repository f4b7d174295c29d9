/**
 * Components: WebAssembly components on waft's engine, without a transpiler. {@linkcode compileComponent} compiles one,
 * `instantiate` links it with JavaScript, and `exports` has its functions in the form that jco gives them, so that
 * types and hosts made for jco fit.
 *
 * @module
 */
export { compileComponent } from "./compile_source.ts";
export { loadComponent } from "./component.ts";
export type { Component, ComponentInstance, ComponentPoolOptions } from "./component.ts";
export { ComponentError } from "./abi/traps.ts";
export type { ComponentImports } from "./link/host_names.ts";
export type { HostExports } from "./link/host_exports.ts";
