/**
 * What an artifact must have in common with the engine that loads it: the version, and the numbers that compiled code has built in (where fields of
 * contexts, objects and the thread state are, what builtins and traps are called by). Out: one line of text. Code of another stamp would
 * run, and do something else: it is never loaded.
 */
import { fingerprint } from "../base/fingerprint.ts";
import { BUILTIN_ROWS } from "../abi/builtins.ts";
import * as contextLayout from "../abi/context_layout.ts";
import * as gcLayout from "../abi/gc_layout.ts";
import { TRAP, TRAP_MESSAGES } from "../traps.ts";

/** The version of this engine: engine/deno.json says the same (a test compares them). */
export const ENGINE_VERSION = "0.1.0";

/** In a bundle the stamp, which was computed when the bundle was made. */
const GIVEN = "stamp-of-waft";

let stamp: string | undefined;

/** Version and fingerprint of the layouts, such as `0.1.0-9f2c01ab`. */
export function engineStamp(): string {
  return stamp ??= GIVEN.startsWith("stamp") ? computeStamp() : GIVEN;
}

function computeStamp(): string {
  const number = fingerprint(JSON.stringify([contextLayout, gcLayout, BUILTIN_ROWS, TRAP, TRAP_MESSAGES]));
  return `${ENGINE_VERSION}-${number.toString(16).padStart(8, "0")}`;
}
