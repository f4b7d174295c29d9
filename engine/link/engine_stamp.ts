/**
 * What an artifact must have in common with the engine that loads it: the version, and the numbers that compiled code has built in (where fields of
 * contexts, objects and the thread state are, what builtins and traps are called by). Out: one line of text. Code of another stamp would
 * run, and do something else: it is never loaded.
 */
import { BUILTIN_ROWS } from "../builtins.ts";
import * as contextLayout from "../context_layout.ts";
import * as gcLayout from "../gc_layout.ts";
import { TRAP, TRAP_MESSAGES } from "../traps.ts";

/** The version of this engine: engine/deno.json says the same (a test compares them). */
export const ENGINE_VERSION = "0.1.0";

let stamp: string | undefined;

/** Version and fingerprint of the layouts, such as `0.1.0-9f2c01ab`. */
export function engineStamp(): string {
  if (stamp === undefined) {
    const text = JSON.stringify([contextLayout, gcLayout, BUILTIN_ROWS, TRAP, TRAP_MESSAGES]);
    // Four characters at a time, all of them ASCII: this is done whenever a process starts.
    const bytes = new TextEncoder().encode(text.padEnd(Math.ceil(text.length / 4) * 4));
    const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
    let hash = 0x811c9dc5 | 0;
    for (let i = 0; i < words.length; i++) {
      hash = Math.imul(hash ^ words[i]!, 0x01000193);
      hash ^= hash >>> 15;
    }
    stamp = `${ENGINE_VERSION}-${(hash >>> 0).toString(16).padStart(8, "0")}`;
  }
  return stamp;
}
