/**
 * Epilogues of a function. The size of the frame is known only at the end of the body, so each epilogue is emitted with
 * a placeholder and completed then.
 */
import * as code from "./code.ts";
import * as machine from "./machine.ts";
import type { i32 } from "./memory.ts";

/** The word of the most recent epilogue, or 0; each word holds the address of the previous one. */
let newest: i32 = 0;

export function beginEpilogues(): void {
  newest = 0;
}

/** Emits the release of the frame. */
export function dropFrame(): void {
  const at = machine.dropFrame();
  code.patch32(at, newest);
  newest = at;
}

/** Fills the size of the frame into all epilogues. */
export function patchEpilogues(frame: i32): void {
  while (newest !== 0) {
    const before = code.wordAt(newest);
    machine.patchFrame(newest, frame);
    newest = before;
  }
}
