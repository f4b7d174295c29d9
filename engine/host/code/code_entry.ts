/**
 * A way into machine code: how JavaScript calls position-independent code. The record of the system (systems.ts) names
 * the way; object_entry.ts and bsearch_entry.ts implement them.
 */
import type { Host } from "../host.ts";

/** The parts of a host that depend on the way into machine code. */
export type CodeEntry = Pick<Host, "nativeLibrary" | "boundCalls">;

/** The pointer to which `boundCalls` binds the function `name`. */
export function pointerOf<Name extends string>(pointer: number | Readonly<Record<Name, number>>, name: Name): number {
  return typeof pointer === "number" ? pointer : pointer[name];
}

/** The own names of a record: programs add enumerable properties to Object.prototype. */
export function namesOf<Name extends string>(record: Readonly<Record<Name, unknown>>): Name[] {
  return Object.keys(record) as Name[];
}
