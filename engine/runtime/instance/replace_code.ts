/**
 * Replacing the code of a module while it is in use. In: a compiled module and another compilation of the same module,
 * whose code is placed. Out: all instances call the new code. Invariant: code on the stack, and code addresses that
 * JavaScript or other instances keep, stay valid: the old image remains, and its functions begin with jumps to the new ones.
 *
 * JavaScript must have control, so that no thread executes the first instructions of a function. An image that other realms
 * use is not changed.
 */
import { Bug } from "../../errors.ts";
import type { Target } from "../../codegen/target.ts";
import type { CompiledModule } from "../code/compiled_module.ts";
import type { Store } from "./store.ts";

/** Replaces the code of `old`; `replaceable` tells by defined function whether a jump may overwrite its start. */
export function replaceCode(
  store: Store,
  old: CompiledModule,
  code: CompiledModule,
  replaceable: Uint8Array,
  writeEntryJump: Target["writeEntryJump"],
): void {
  requireSameLayout(old, code);
  for (const instance of store.instancesOf(old)) instance.adoptCode(code);
  if (old.references.isShared) return;
  const from = old.image;
  const to = code.image;
  store.thread.arena.patch(from.base, from.size, (placed) => {
    for (let k = 0; k < replaceable.length; k++) {
      if (replaceable[k] === 0) continue;
      const at = from.tables.functionStart[k];
      writeEntryJump(placed, at, to.base + to.tables.functionStart[k] - (from.base + at));
    }
  });
}

/** VM contexts of either code must be laid out alike; which tables the code takes as constant may differ. */
function requireSameLayout(old: CompiledModule, code: CompiledModule): void {
  const text = ({ layout }: CompiledModule) => JSON.stringify({ ...layout, knownTables: undefined });
  if (text(old) !== text(code)) throw new Bug("Two compilations of one module lay out its VM contexts differently");
}
