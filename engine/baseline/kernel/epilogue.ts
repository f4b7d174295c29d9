/**
 * Ways out of the function: each gives the frame back, whose size is known at the end only. In: epilogues as they are written. Out: their sizes, filled in.
 */
import * as code from "./code.ts";
import * as machine from "./machine.ts";
import type { i32 } from "./memory.ts";

/** The newest epilogue's word, 0 for none; each holds the address of the one before. */
let newest: i32 = 0;

export function beginEpilogues(): void {
  newest = 0;
}

/** Gives the frame back. */
export function dropFrame(): void {
  const at = machine.dropFrame();
  code.patch32(at, newest);
  newest = at;
}

/** Fills the size of the frame into all epilogues. */
export function patchEpilogues(frame: i32): void {
  while (newest !== 0) {
    const before = code.wordAt(newest);
    code.patch32(newest, frame);
    newest = before;
  }
}
