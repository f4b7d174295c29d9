/**
 * Identifies the ABI that an artifact shares with the engine that loads it: the version, and a fingerprint of the
 * constants in compiled code (field offsets of contexts, objects, strings and the thread state, builtin and trap
 * numbers). Out: one line of text. An artifact with another stamp is never loaded, because its code would run with
 * wrong offsets.
 */
import { fingerprint } from "../base/fingerprint.ts";
import { BUILTIN_ROWS } from "../abi/builtins.ts";
import * as contextLayout from "../abi/context_layout.ts";
import * as gcLayout from "../abi/gc_layout.ts";
import * as stringLayout from "../abi/string_layout.ts";
import { TRAP, TRAP_MESSAGES } from "../base/traps.ts";

/** The version of this engine; a test checks that engine/deno.json has the same one. */
export const ENGINE_VERSION = "0.1.0";

/** Bundling replaces this text with the computed stamp. */
const GIVEN = "stamp-of-waft";

/** The stamp, once it has been computed. */
let stamp: string | undefined;

/** The version and the fingerprint of the layouts, such as `0.1.0-9f2c01ab`. */
export function engineStamp(): string {
  return stamp ??= GIVEN.startsWith("stamp") ? computeStamp() : GIVEN;
}

function computeStamp(): string {
  const constants = [contextLayout, gcLayout, stringLayout, BUILTIN_ROWS, TRAP, TRAP_MESSAGES];
  const number = fingerprint(JSON.stringify(constants));
  return `${ENGINE_VERSION}-${number.toString(16).padStart(8, "0")}`;
}
