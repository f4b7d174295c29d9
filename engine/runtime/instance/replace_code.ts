/**
 * Replaces the code of a module while it is in use. In: a compiled module, and another compilation of the same module
 * whose code is placed. Out: all instances call the new code. Invariant: code on the stack, and code addresses held by
 * JavaScript or other instances, remain valid: the old image stays, and its functions begin with jumps to the new ones.
 *
 * JavaScript must be in control, so that no thread executes the first instructions of a function. An image that other
 * realms use is not patched.
 */
import { Bug } from "../../errors.ts";
import type { Target } from "../../codegen/target.ts";
import type { CompiledModule } from "../code/compiled_module.ts";
import type { Store } from "./store.ts";

/**
 * Replaces the code of `old`, or throws RangeError and changes nothing where the system refuses access to it.
 * `replaceable` is 1 for each defined function whose start a jump may overwrite.
 */
export function replaceCode(
  store: Store,
  old: CompiledModule,
  code: CompiledModule,
  replaceable: Uint8Array,
  writeEntryJump: Target["writeEntryJump"],
): void {
  requireSameLayout(old, code);
  if (!old.references.isShared) patchEntries(store, old, code, replaceable, writeEntryJump);
  for (const instance of store.instancesOf(old)) instance.adoptCode(code);
}

/** Makes the functions of `old` jump to those of `code`. */
function patchEntries(
  store: Store,
  { image: from }: CompiledModule,
  { image: to }: CompiledModule,
  replaceable: Uint8Array,
  writeEntryJump: Target["writeEntryJump"],
): void {
  store.thread.arena.patch(from.base, from.size, (placed) => {
    for (let k = 0; k < replaceable.length; k++) {
      if (replaceable[k] === 0) continue;
      const at = from.tables.functionStart[k];
      writeEntryJump(placed, at, to.base + to.tables.functionStart[k] - (from.base + at));
    }
  });
}

/** Throws unless both compilations lay out VM contexts alike; the tables that they assume to be constant may differ. */
function requireSameLayout(old: CompiledModule, code: CompiledModule): void {
  const text = ({ layout }: CompiledModule) => JSON.stringify({ ...layout, knownTables: undefined });
  if (text(old) !== text(code)) throw new Bug("Two compilations of one module lay out its VM contexts differently");
}
