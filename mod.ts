/**
 * waft for programs: the engine, and the version of this build.
 *
 * @module
 */
export * from "@waft/engine";
export { VERSION } from "./project/version_string.ts";
