/**
 * `waft features`: WebAssembly features.
 */
import type { Command } from "commander";
import { addKeysCommand } from "./setting_keys.ts";

/** Adds `features`. */
export function addCommand(program: Command): void {
  addKeysCommand(program, "features");
}
