/**
 * The target machine. The build for another processor substitutes that processor's file.
 */
export * from "./machine_x64.ts";
