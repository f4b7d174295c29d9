/**
 * Files that fail, for tests. In: the number of a changing operation and the kind of failure. Out: the operations of
 * the disk up to that one.
 *
 * {@linkcode DyingFiles}: from then on every operation fails, as if the process had died: `before` that operation,
 * `after` it, or `half`-way through writing a file. {@linkcode RefusingFiles}: only that operation fails, as on a disk
 * without space.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import { DISK, type Files, type Judge } from "../../project/base/files.ts";

/** Thrown for everything that a dead process would not have done. */
export class Killed extends Error {}

/** The moment of death in the last operation. */
export type Moment = "before" | "half" | "after";

/** Files that die at the `count`-th changing operation; `steps` tells how many there were. */
export class DyingFiles implements Files {
  steps = 0;
  dead = false;
  readonly #count: number;
  readonly #moment: Moment;

  constructor(count: number, moment: Moment) {
    this.#count = count;
    this.#moment = moment;
  }

  async #step<T>(work: () => Promise<T>, half?: () => void): Promise<T> {
    this.#live();
    if (++this.steps !== this.#count) return await work();
    this.dead = true;
    if (this.#moment === "after") await work();
    else if (this.#moment === "half") half?.();
    throw new Killed();
  }
  #live(): void {
    if (this.dead) throw new Killed();
  }
  create(path: string, bytes: Uint8Array, mode?: number): Promise<boolean> {
    return this.#step(() => DISK.create(path, bytes, mode), () => {
      const file = openSync(path, "wx");
      writeSync(file, bytes.subarray(0, bytes.length >> 1));
      closeSync(file); // as the end of the process does
    });
  }
  rename(from: string, to: string): Promise<void> {
    return this.#step(() => DISK.rename(from, to));
  }
  remove(path: string): Promise<void> {
    return this.#step(() => DISK.remove(path));
  }
  makeDirectory(path: string, mode?: number): Promise<void> {
    return this.#step(() => DISK.makeDirectory(path, mode));
  }
  read(path: string, maxBytes?: number, judge?: Judge): Promise<Uint8Array | undefined> {
    this.#live();
    return DISK.read(path, maxBytes, judge);
  }
  list(path: string): Promise<string[]> {
    this.#live();
    return DISK.list(path);
  }
  status(path: string): ReturnType<Files["status"]> {
    this.#live();
    return DISK.status(path);
  }
  realPath(path: string): Promise<string> {
    this.#live();
    return DISK.realPath(path);
  }
}

/** Files that refuse the `count`-th creation, renaming or directory; `steps` tells how many there were. */
export class RefusingFiles implements Files {
  steps = 0;
  readonly #count: number;

  constructor(count: number) {
    this.#count = count;
  }

  async #step<T>(path: string, work: () => Promise<T>): Promise<T> {
    if (++this.steps !== this.#count) return await work();
    throw Object.assign(new Error(`ENOSPC: no space left on device, '${path}'`), { code: "ENOSPC", path });
  }
  create(path: string, bytes: Uint8Array, mode?: number): Promise<boolean> {
    return this.#step(path, () => DISK.create(path, bytes, mode));
  }
  rename(from: string, to: string): Promise<void> {
    return this.#step(from, () => DISK.rename(from, to));
  }
  makeDirectory(path: string, mode?: number): Promise<void> {
    return this.#step(path, () => DISK.makeDirectory(path, mode));
  }
  read = DISK.read;
  remove = DISK.remove;
  list = DISK.list;
  status = DISK.status;
  realPath = DISK.realPath;
}
