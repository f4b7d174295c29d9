/**
 * CodeImage: a module's machine code in executable memory, with the tables that map a program counter to its function,
 * wasm position and unwind information. In: MachineCode with all relocations resolved. Out: code addresses and lookups
 * by program counter. Invariant: tables are sorted by offset, so lookups are binary searches.
 */
import { grown } from "../base/columns.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { ImageStorage } from "../codegen/placed_code.ts";
import type { CodeArena, GrowingChunk, OpenChunk } from "../host/memory/code_arena.ts";

/** The function and position of a program counter in an image. */
interface CodeSite {
  /** Bytes from the stack pointer at this point to the return address of the frame. */
  frame: number;
  /** Byte offset of the wasm instruction in the module. */
  pos: number;
  /** Inline site (0: none) in the function's own list. */
  site: number;
}

/** The unwinder's view of a return address. */
interface UnwindSite {
  /** Bytes from the address above the return address to the next one. */
  frame: number;
  /** Address where exceptions are handled, 0 for none. */
  landing: number;
  /** Whether the caller's VM context is above the return address. */
  cross: boolean;
}

/** Tables of an image; typed arrays only, which serialize without conversion. */
export interface CodeTables {
  callReturn: Int32Array;
  callFrame: Int32Array;
  callPos: Int32Array;
  callSite: Int32Array;
  callLanding: Int32Array;
  callCross: Uint8Array;
  trapAt: Int32Array;
  trapCode: Int32Array;
  trapFrame: Int32Array;
  trapPos: Int32Array;
  trapSite: Int32Array;
  /** Offsets of the displacements that refer to the arena's poll page. */
  pollAt: Int32Array;
  /** Code offsets per defined function. */
  functionStart: Int32Array;
  functionEnd: Int32Array;
  /** Thunks per signature id, −1 if absent. */
  entryThunk: Int32Array;
  hostThunk: Int32Array;
}

/** Finished code with its tables. */
interface PlaceableCode {
  readonly bytes: Uint8Array;
  readonly tables: CodeTables;
  /** The memory of `bytes`, if they are at the place of the image. */
  readonly storage?: ImageStorage | undefined;
  /** The place of the image, if code is added to it later. */
  readonly growing?: GrowingChunk | undefined;
}

/** The columns of sites, in the order of the rows of MachineCode. */
type SiteColumn = Exclude<keyof CodeTables, "pollAt" | "functionStart" | "functionEnd" | "entryThunk" | "hostThunk">;
const CALL_NAMES: readonly SiteColumn[] = [
  "callReturn",
  "callFrame",
  "callPos",
  "callSite",
  "callLanding",
  "callCross",
];
const TRAP_NAMES: readonly SiteColumn[] = ["trapAt", "trapCode", "trapFrame", "trapPos", "trapSite"];

/** Column `n` of the rows of `width` words in `parts`. */
function columnOf(parts: readonly Int32Array[], width: number, n: number): Int32Array {
  const words = parts.reduce((sum, { length }) => sum + length, 0);
  const column = new Int32Array(words / width);
  let k = 0;
  for (const part of parts) for (let at = n; at < part.length; at += width) column[k++] = part[at];
  return column;
}

/**
 * Adds the columns of `rows` to `tables`; a column is split off when it is first read, which in many images is never.
 */
function addColumns(tables: Partial<CodeTables>, rows: readonly Int32Array[], names: readonly SiteColumn[]): void {
  names.forEach((name, n) => {
    const read = () => {
      const column = columnOf(rows, names.length, n);
      return name === "callCross" ? new Uint8Array(column) : column;
    };
    const get = () => {
      const value = read();
      Object.defineProperty(tables, name, { value, enumerable: true });
      return value;
    };
    Object.defineProperty(tables, name, { get, enumerable: true, configurable: true });
  });
}

/** The tables of finished machine code. */
export function codeTables(code: MachineCode): CodeTables {
  const tables: Partial<CodeTables> = {};
  addColumns(tables, code.callParts, CALL_NAMES);
  addColumns(tables, code.trapParts, TRAP_NAMES);
  return Object.assign(tables, {
    pollAt: Int32Array.from(code.pollAt),
    functionStart: code.functionStart,
    functionEnd: code.functionEnd,
    entryThunk: code.entryThunk,
    hostThunk: code.hostThunk,
  }) as CodeTables;
}

/** The code of a function that is added to an image, behind all other code. Offsets are those of the image. */
interface LazyCode {
  /** The defined function's index. */
  readonly index: number;
  readonly start: number;
  readonly end: number;
  /** Rows of call and trap sites (MachineCode). */
  readonly calls: Int32Array;
  readonly traps: Int32Array;
}

/** Index in `rows`, each of `width` words, ascending by the first one, of the row that begins with `offset`; or −1. */
function rowAt(rows: Int32Array, width: number, offset: number): number {
  let low = 0;
  let high = rows.length / width - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const at = rows[middle * width];
    if (at === offset) return middle * width;
    if (at < offset) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

/** The elements of both columns, in an array of the first one's type. */
function joined<C extends Int32Array | Uint8Array>(first: C, second: ArrayLike<number>): C {
  const all = grown(first, first.length + second.length);
  all.set(second, first.length);
  return all;
}

export class CodeImage {
  readonly base: number;
  /** Bytes of code at most: code may be added. */
  readonly capacity: number;
  /** Adds code that has been placed and is not in the tables yet. */
  update: (() => void) | undefined;
  #size: number;
  readonly #tables: CodeTables;
  /** The code that was added, ascending, and the columns of all other code. */
  readonly #lazy: LazyCode[] = [];
  #own: Readonly<Record<string, Int32Array | Uint8Array>> | undefined;
  /** False once pages of replaced functions have been dropped: the code must not be read any more. */
  isComplete = true;

  constructor(base: number, size: number, tables: CodeTables, capacity: number = size) {
    this.base = base;
    this.#size = size;
    this.capacity = capacity;
    this.#tables = tables;
  }

  /** Bytes of code so far. */
  get size(): number {
    this.update?.();
    return this.#size;
  }

  get tables(): CodeTables {
    this.update?.();
    return this.#tables;
  }

  contains(address: number): boolean {
    return address >= this.base && address < this.base + this.size;
  }

  /**
   * Adds the code of a function, which has been placed. The columns of sites in `tables` are read anew after that, so
   * they are for rare uses.
   */
  add(code: LazyCode): void {
    this.#lazy.push(code);
    this.#size = code.end;
    const tables = this.#tables;
    tables.functionStart[code.index] = code.start;
    tables.functionEnd[code.index] = code.end;
    this.#byStart = undefined;
    if (this.#lazy.length > 1) return;
    // From now on, the columns include those of the code that has been added.
    this.#own = Object.fromEntries([...CALL_NAMES, ...TRAP_NAMES].map((name) => [name, tables[name]]));
    this.#growColumns(CALL_NAMES, ({ calls }) => calls);
    this.#growColumns(TRAP_NAMES, ({ traps }) => traps);
  }

  #growColumns(names: readonly SiteColumn[], rowsOf: (code: LazyCode) => Int32Array): void {
    names.forEach((name, n) => {
      let known = 0;
      let column = this.#own![name];
      const get = () => {
        if (known === this.#lazy.length) return column;
        known = this.#lazy.length;
        column = joined(this.#own![name], columnOf(this.#lazy.map(rowsOf), names.length, n));
        return column;
      };
      Object.defineProperty(this.#tables, name, { get, enumerable: true, configurable: true });
    });
  }

  /**
   * The added code that contains `offset`. Where one function ends and the next one begins, that is the end of a call
   * in the first one, or an instruction that has `faulted` in the second.
   */
  #lazyAt(offset: number, faulted = false): LazyCode | undefined {
    this.update?.();
    const lazy = this.#lazy;
    if (lazy.length === 0 || offset < lazy[0].start) return undefined;
    let low = 0;
    let high = lazy.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const { end } = lazy[middle];
      if (end < offset || (faulted && end === offset)) low = middle + 1;
      else high = middle;
    }
    return lazy[low];
  }

  /** The call that returns to `address`, if the address is in this image. */
  callSiteAt(address: number): CodeSite | undefined {
    const offset = address - this.base;
    const lazy = this.#lazyAt(offset)?.calls;
    if (lazy !== undefined) {
      const row = rowAt(lazy, CALL_NAMES.length, offset);
      return row < 0 ? undefined : { frame: lazy[row + 1], pos: lazy[row + 2], site: lazy[row + 3] };
    }
    const { callReturn, callFrame, callPos, callSite } = this.tables;
    const index = rowAt(callReturn, 1, offset);
    return index < 0 ? undefined : { frame: callFrame[index], pos: callPos[index], site: callSite[index] };
  }

  /** The same for the unwinder. */
  unwindSiteAt(address: number): UnwindSite | undefined {
    const offset = address - this.base;
    const lazy = this.#lazyAt(offset)?.calls;
    if (lazy !== undefined) {
      const row = rowAt(lazy, CALL_NAMES.length, offset);
      return row < 0 ? undefined : this.#unwindSite(lazy[row + 1], lazy[row + 4], lazy[row + 5]);
    }
    const { callReturn, callFrame, callLanding, callCross } = this.tables;
    const index = rowAt(callReturn, 1, offset);
    return index < 0 ? undefined : this.#unwindSite(callFrame[index], callLanding[index], callCross[index]);
  }

  #unwindSite(frame: number, landing: number, cross: number): UnwindSite {
    return { frame, landing: landing < 0 ? 0 : this.base + landing, cross: cross === 1 };
  }

  /**
   * The trap site at `address`, if there is one: a faulting instruction, or the return address of a call of a trap
   * stub. Where a function ends in such a call and the next one begins with an access, both have one address, the call
   * first.
   */
  trapSiteAt(address: number, faulted: boolean): (CodeSite & { code: number }) | undefined {
    const offset = address - this.base;
    const lazy = this.#lazyAt(offset, faulted)?.traps;
    if (lazy !== undefined) {
      const row = rowAt(lazy, TRAP_NAMES.length, offset);
      if (row < 0) return undefined;
      return { code: lazy[row + 1], frame: lazy[row + 2], pos: lazy[row + 3], site: lazy[row + 4] };
    }
    const { trapAt, trapCode, trapFrame, trapPos, trapSite } = this.tables;
    let index = rowAt(trapAt, 1, offset);
    if (index < 0) return undefined;
    const twin = faulted ? index + 1 : index - 1;
    if (trapAt[twin] === trapAt[index]) index = twin;
    return { code: trapCode[index], frame: trapFrame[index], pos: trapPos[index], site: trapSite[index] };
  }

  /** The defined function whose code holds `address`, or −1. */
  functionAt(address: number): number {
    const offset = address - this.base;
    const lazy = this.#lazyAt(offset, true);
    if (lazy !== undefined && lazy.start <= offset) return lazy.index;
    const { functionStart, functionEnd } = this.tables;
    this.#byStart ??= Int32Array.from(functionStart.keys()).sort((a, b) => functionStart[a] - functionStart[b]);
    let low = 0;
    let high = this.#byStart.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (functionEnd[this.#byStart[middle]] <= offset) low = middle + 1;
      else high = middle;
    }
    const found = this.#byStart[low];
    return found !== undefined && functionStart[found] <= offset ? found : -1;
  }
  /** Function indices in the order of their code; made by the first trap. */
  #byStart: Int32Array | undefined;
}

/** The place of one image, which its compiler may open to write the code there. */
export class ImagePlace {
  readonly #arena: CodeArena;
  #chunk: OpenChunk | undefined;
  #growing: GrowingChunk | undefined;

  constructor(arena: CodeArena) {
    this.#arena = arena;
  }

  /** Opens a chunk of at least `bytes`; undefined if that is not possible. */
  readonly open = (bytes: number): OpenChunk | undefined => {
    this.release();
    return this.#chunk = this.#arena.open(bytes);
  };

  /** Opens a chunk for code that is added lazily; undefined if that is not possible. */
  readonly openGrowing = (bytes: number): GrowingChunk | undefined => {
    this.release();
    return this.#growing = this.#arena.openGrowing(bytes);
  };

  /**
   * Places finished code as an image: where it is, if it was written to the open chunk (`storage`) or belongs to the
   * growing chunk `growing`, and otherwise as a copy.
   */
  place({ bytes, tables, storage, growing }: PlaceableCode): CodeImage {
    if (growing !== undefined) {
      const { address, capacity } = growing;
      resolvePolls(bytes, address, tables.pollAt, this.#arena.pollPage);
      growing.write(0, bytes);
      this.#growing = undefined;
      return new CodeImage(address, bytes.length, tables, capacity);
    }
    const chunk = this.#chunk;
    if (chunk === undefined || storage !== chunk) return placeImage(this.#arena, bytes, tables);
    resolvePolls(bytes, chunk.address, tables.pollAt, this.#arena.pollPage);
    chunk.publish(bytes.length);
    return new CodeImage(chunk.address, bytes.length, tables);
  }

  /** Frees the chunk, unless it has become the image. */
  release(): void {
    this.#chunk?.release();
    if (this.#growing !== undefined) this.#arena.release(this.#growing.address, this.#growing.capacity);
    this.#growing = undefined;
  }
}

/**
 * Places machine code in executable memory and adjusts the displacements that depend on its address; `bytes` is not
 * changed.
 */
export function placeImage(arena: CodeArena, bytes: Uint8Array, tables: CodeTables): CodeImage {
  const base = arena.allocate(bytes.length);
  arena.publish(base, bytes, (placed) => resolvePolls(placed, base, tables.pollAt, arena.pollPage));
  return new CodeImage(base, bytes.length, tables);
}

/** Writes the displacements by which code at `base` reads the poll page. */
export function resolvePolls(placed: Uint8Array, base: number, pollAt: Int32Array, pollPage: number): void {
  for (let k = 0; k < pollAt.length; k++) {
    const at = pollAt[k];
    const displacement = pollPage - (base + at + 4);
    placed[at] = displacement;
    placed[at + 1] = displacement >> 8;
    placed[at + 2] = displacement >> 16;
    placed[at + 3] = displacement >> 24;
  }
}

/**
 * The same for `bytes` of code at `offset` of the file `image`, whose pages are mapped as they are. Undefined if that
 * is impossible: the code depends on its address or begins within a page, or the system refuses.
 */
export function mapCodeImage(
  arena: CodeArena,
  { image, offset, bytes, pageSize }: { image: number; offset: number; bytes: number; pageSize: number },
  tables: CodeTables,
): CodeImage | undefined {
  if (tables.pollAt.length > 0 || offset % pageSize !== 0) return undefined;
  const base = arena.allocate(bytes);
  try {
    arena.publishMapped(base, bytes, image, offset);
  } catch (error) {
    arena.release(base, bytes);
    if (error instanceof RangeError) return undefined;
    throw error;
  }
  return new CodeImage(base, bytes, tables);
}
