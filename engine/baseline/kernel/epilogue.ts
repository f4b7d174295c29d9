/**
 * Epilogues of a function. In: requests to release the frame. Out: instructions that contain a placeholder for the
 * frame's size, which is known only at the end of the body and is filled in then.
 */
import * as code from "./code.ts";
import * as machine from "./machine.ts";
import type { i32 } from "./memory.ts";

/**
 * Address of the placeholder of the most recent epilogue, or 0; each placeholder holds the address of the previous one.
 */
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
