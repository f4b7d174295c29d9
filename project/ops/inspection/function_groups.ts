/**
 * Functions grouped by the namespace in their names: `core::fmt` of Rust and C++, `runtime` of Go, `~lib/rt` of
 * AssemblyScript. In: functions with names and sizes. Out: a tree of groups of two levels, the largest first.
 * Invariant: the bytes of a group are the sum of those of its functions, and every function is in one group.
 */
import type { SizedFunction } from "./inspect_module.ts";

/** Functions with a common first part of their names. */
export interface FunctionGroup {
  /** Undefined for functions whose names have no namespace, or that have no name. */
  readonly name?: string;
  readonly bytes: number;
  /** The largest first. */
  readonly functions: readonly SizedFunction[];
}

/** Prefixes without information about the origin of a function: of Rust's generic implementations and closures. */
const PREFIX = /^[<&*(\[]+(?:mut |const |dyn )?/;

/** The namespace in a function's name; undefined if it has none. */
export function namespaceOf(name: string): string | undefined {
  const library = /^~lib\/[^/.#]+/.exec(name);
  if (library !== null) return library[0];
  const path = /^(?:[A-Za-z_][\w-]*\/)+[A-Za-z_][\w-]*(?=[./])/.exec(name) ??
    /^[A-Za-z_$][\w$]*(?=::|[./][A-Za-z_$(*~])/.exec(name.replace(PREFIX, ""));
  return path?.[0];
}

/** Groups `functions`, which come with the largest first. */
export function groupFunctions(functions: readonly SizedFunction[]): FunctionGroup[] {
  const groups = new Map<string | undefined, SizedFunction[]>();
  for (const one of functions) {
    const name = one.name === undefined ? undefined : namespaceOf(one.name);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [one]);
    else group.push(one);
  }
  return [...groups].map(([name, members]) => ({
    ...(name === undefined ? {} : { name }),
    bytes: members.reduce((sum, { bytes }) => sum + bytes, 0),
    functions: members,
  })).sort((a, b) => b.bytes - a.bytes);
}
