/**
 * Replaces the code of a module while it is in use. In: a compiled module, and another compilation of the same module
 * whose code is placed. Out: all instances call the new code. Invariant: code on the stack, and code addresses held by
 * JavaScript or other instances, remain valid: the old image stays, and its functions begin with jumps to the new ones.
 * Pages behind the entries are dropped once no frame can return there.
 *
 * JavaScript must be in control, so that no thread executes the first instructions of a function. An image that other
 * realms use is not patched.
 */
import { Bug } from "../../base/errors.ts";
import type { Target } from "../../codegen/target.ts";
import type { CompiledModule } from "../code/compiled_module.ts";
import type { Store } from "./store.ts";

/** Bytes kept at the start of a replaced function. Every entry jump is shorter. */
const ENTRY_BYTES = 16;

/**
 * Replaces the code of `old`, or throws RangeError and changes nothing where the system refuses access to it.
 * `replaceable` is 1 for each defined function whose start a jump may overwrite. Returns the functions of at least a
 * page that begin with a jump now, the largest first: none of an image that other realms use.
 */
export function replaceCode(
  store: Store,
  old: CompiledModule,
  code: CompiledModule,
  replaceable: Uint8Array,
  writeEntryJump: Target["writeEntryJump"],
): readonly number[] {
  requireSameLayout(old, code);
  const replaced = old.references.isShared ? [] : patchEntries(store, old, code, replaceable, writeEntryJump);
  for (const instance of store.instances.ofModule(old)) instance.adoptCode(code);
  return replaced;
}

/**
 * Makes the functions of `old` that `part` has as well jump to those of `part`, for as long as `old` lives. All other
 * addresses stay. Throws RangeError and changes nothing as `replaceCode` does.
 */
export function replaceFunctions(
  store: Store,
  old: CompiledModule,
  part: CompiledModule,
  replaceable: Uint8Array,
  writeEntryJump: Target["writeEntryJump"],
): void {
  requireSameLayout(old, part);
  old.keepsPart(part);
  patchEntries(store, old, part, replaceable, writeEntryJump);
}

/**
 * Drops the pages of `replaced` functions, except for their entries. The functions must have no frames: their return
 * addresses are the only addresses within functions that anything holds. Returns the number of bytes dropped.
 */
export function dropReplaced(store: Store, { image, references }: CompiledModule, replaced: readonly number[]): number {
  if (references.isShared || replaced.length === 0) return 0;
  const { base, tables: { functionStart, functionEnd } } = image;
  const dropped = store.thread.arena.dropPages(
    base,
    replaced.map((k) => [base + functionStart[k] + ENTRY_BYTES, base + functionEnd[k]]),
  );
  if (dropped > 0) image.isComplete = false;
  return dropped;
}

/** Makes the functions of `old` jump to those of `code`; returns the large ones that do, the largest first. */
function patchEntries(
  store: Store,
  { image: from }: CompiledModule,
  { image: to }: CompiledModule,
  replaceable: Uint8Array,
  writeEntryJump: Target["writeEntryJump"],
): number[] {
  const { arena, host } = store.thread;
  const large: number[] = [];
  const sizeOf = (k: number) => from.tables.functionEnd[k] - from.tables.functionStart[k];
  arena.patch(from.base, from.size, (placed) => {
    for (let k = 0; k < replaceable.length; k++) {
      if (replaceable[k] === 0 || to.tables.functionStart[k] < 0) continue;
      const at = from.tables.functionStart[k];
      const distance = to.base + to.tables.functionStart[k] - (from.base + at);
      if (writeEntryJump(placed, at, distance) && sizeOf(k) >= host.pageSize) large.push(k);
    }
  });
  return large.sort((a, b) => sizeOf(b) - sizeOf(a));
}

/** Throws unless both compilations lay out VM contexts alike; the tables that they assume to be constant may differ. */
function requireSameLayout(old: CompiledModule, code: CompiledModule): void {
  const text = ({ layout }: CompiledModule) => JSON.stringify({ ...layout, knownTables: undefined });
  if (text(old) !== text(code)) throw new Bug("Two compilations of one module lay out its VM contexts differently");
}
