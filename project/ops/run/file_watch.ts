/**
 * Watches a file. In: its path. Out: a call after each change. Invariant: a file that is still being written is not
 * reported; a path that names no file for a while is not an error. Polls, because the events of file systems differ,
 * and a file that is replaced by another one has none.
 */
import { statSync } from "node:fs";
import { setInterval } from "node:timers";

/** The interval of polls. A file that two polls find unchanged is written to the end. */
const INTERVAL_MS = 300;

/**
 * Calls `onChange` when the file no longer has the state `since`, which is to be taken before the file is read: else a
 * change in between has no call. Keeps no process alive.
 */
export function watchFile(path: string, since: FileState, onChange: () => void): void {
  let reported = since;
  let last = reported;
  setInterval(() => {
    const state = fileState(path);
    if (state !== undefined && state === last && state !== reported) {
      reported = state;
      onChange();
    }
    last = state;
  }, INTERVAL_MS).unref();
}

/** The state of a file: a text that differs when the file does; undefined if there is none. */
export type FileState = string | undefined;

/** The state of a file now. */
export function fileState(path: string): FileState {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(path);
    return [dev, ino, size, mtimeMs, ctimeMs].join(":");
  } catch {
    return undefined;
  }
}
