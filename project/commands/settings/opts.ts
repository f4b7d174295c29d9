/**
 * `waft opts`: the compiler's optimizations.
 */
import type { Command } from "commander";
import { addKeysCommand } from "./setting_keys.ts";

/** Adds `opts`. */
export function addCommand(program: Command): void {
  addKeysCommand(program, "opts");
}
