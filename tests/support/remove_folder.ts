/**
 * Removes a folder of a test with everything in it; again when a program that has just ended still uses it: Windows
 * keeps the working directory and the files of a process until its last handle is closed. Throws the last error after
 * two seconds.
 */
import { rmSync } from "node:fs";

const TRIES = 100;
const PAUSE_MS = 20;

export function removeFolder(folder: string): void {
  for (let tries = 0;; tries++) {
    try {
      return rmSync(folder, { recursive: true, force: true });
    } catch (error) {
      if (tries === TRIES) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
    }
  }
}
