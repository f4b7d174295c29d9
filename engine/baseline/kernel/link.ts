/**
 * Resolves the references of a run's code as far as their targets are known: to bodies of the same run, and to the
 * stubs of the image. In: the rows of relocations. Out: patched code, and the rows that are left for the driver.
 */
import { RELOC_FUNCTION, RELOC_IMAGE, RELOC_STUB } from "./constants.ts";
import * as code from "./code.ts";
import * as layout from "./layout.ts";
import * as machine from "./machine.ts";
import { type i32, load32, store32 } from "./memory.ts";

/** The offset in the image of a row's target, or −1. */
function targetOf(kind: i32, target: i32, first: i32, done: i32): i32 {
  if (kind === RELOC_IMAGE) return target;
  if (kind === RELOC_STUB) return load32(layout.STUBS + target * 4);
  if (kind !== RELOC_FUNCTION || target < first || target >= first + done) return -1;
  const result = layout.RESULTS + (target - first) * layout.RESULT_ROW;
  if (load32(result + layout.RESULT_STATUS) !== layout.STATUS_DONE) return -1;
  return load32(layout.H_BASE) + load32(result + layout.RESULT_START);
}

/** Resolves the references in the code of `done` bodies from `first` on. */
export function linkCode(first: i32, done: i32): void {
  let kept: i32 = layout.RELOCATIONS;
  for (let row: i32 = layout.RELOCATIONS; row < code.relocationsAt; row += 12) {
    const at = load32(row);
    const kind = load32(row + 4);
    const target = load32(row + 8);
    const place = targetOf(kind, target, first, done);
    if (place >= 0 && machine.link(code.addressOf(at), place - at)) continue;
    store32(kept, at);
    store32(kept + 4, kind);
    store32(kept + 8, target);
    kept += 12;
  }
  code.keepRelocations(kept);
}
