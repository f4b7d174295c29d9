/**
 * Places the code of a run in the image and resolves its references to known targets: bodies that have been placed,
 * stubs of the image, and the poll page if the address of the image is known. In: the run's code and rows, whose
 * offsets are relative to its code, and H_BASE. Out: patched code, rows with offsets in the image, and the relocations
 * that are left for the driver.
 */
import { RELOC_FUNCTION, RELOC_IMAGE, RELOC_POLL_PAGE, RELOC_STUB } from "./constants.ts";
import * as code from "./code.ts";
import * as layout from "./layout.ts";
import * as machine from "./machine.ts";
import { type i32, load32, store32 } from "./memory.ts";

/** Adds `base` to the offsets of rows of `bytes` each. */
function moveRows(first: i32, end: i32, bytes: i32, base: i32): void {
  for (let row = first; row < end; row += bytes) store32(row, load32(row) + base);
}

/** Places the code of `done` bodies from `first` on at H_BASE. */
export function placeCode(first: i32, done: i32): void {
  placeRows(first, done, layout.CALLS, layout.TRAPS);
}

/** The same for bodies whose rows of call and trap sites begin at these addresses. */
export function placeRows(first: i32, done: i32, calls: i32, traps: i32): void {
  const base = load32(layout.H_BASE);
  for (let row: i32 = calls; row < code.callsAt; row += 24) {
    store32(row, load32(row) + base);
    const landing = load32(row + 16);
    if (landing >= 0) store32(row + 16, landing + base);
  }
  moveRows(traps, code.trapsAt, 20, base);
  moveRows(layout.RELOCATIONS, code.relocationsAt, 12, base);
  const starts = load32(layout.H_STARTS) + first * 4;
  for (let result: i32 = 0; result < done * 4; result += 4) {
    if (load32(layout.RESULT_STATUSES + result) !== layout.STATUS_DONE) continue;
    const start = base + load32(layout.RESULT_STARTS + result);
    store32(starts + result, start);
    store32(layout.RESULT_STARTS + result, start);
    store32(layout.RESULT_ENDS + result, base + load32(layout.RESULT_ENDS + result));
  }
}

/** The offset in the image of a row's target, or −1. */
function targetOf(kind: i32, target: i32): i32 {
  if (kind === RELOC_IMAGE) return target;
  if (kind === RELOC_STUB) return load32(layout.STUBS + target * 4);
  return kind === RELOC_FUNCTION ? load32(load32(layout.H_STARTS) + target * 4) : -1;
}

/** Resolves the references in the code of the run, which has been placed. */
export function linkCode(): void {
  const base = load32(layout.H_BASE);
  const polls = load32(layout.H_POLL_DISTANCE);
  let kept: i32 = layout.RELOCATIONS;
  for (let row: i32 = layout.RELOCATIONS; row < code.relocationsAt; row += 12) {
    const at = load32(row);
    const kind = load32(row + 4);
    const target = load32(row + 8);
    if (kind === RELOC_POLL_PAGE && polls !== 0) {
      code.patch32(code.addressOf(at - base), polls - at - 4);
      continue;
    }
    const place = targetOf(kind, target);
    if (place >= 0 && machine.link(code.addressOf(at - base), place - at)) continue;
    store32(kept, at);
    store32(kept + 4, kind);
    store32(kept + 8, target);
    kept += 12;
  }
  code.keepRelocations(kept);
}
