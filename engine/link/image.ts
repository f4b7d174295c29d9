/**
 * CodeImage: a module's machine code in executable memory, with the tables that map a program counter to its function,
 * wasm position and unwind information. In: MachineCode with all relocations resolved. Out: code addresses and lookups
 * by program counter. Invariant: tables are sorted by offset, so lookups are binary searches.
 */
import type { ImageStorage, MachineCode } from "../codegen/machine_code.ts";
import type { CodeArena, OpenChunk } from "../host/code_arena.ts";

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
  /** Thunks per signature id, −1 if absent, LATE_THUNK for an entry thunk in an image of its own. */
  entryThunk: Int32Array;
  hostThunk: Int32Array;
}

/** In `CodeTables.entryThunk`: the thunk is made when it is first needed. */
export const LATE_THUNK = -2;

/** Finished code with its tables. */
interface PlaceableCode {
  readonly bytes: Uint8Array;
  readonly tables: CodeTables;
  /** The memory of `bytes`, if they are at the place of the image. */
  readonly storage?: ImageStorage | undefined;
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

/** Index of `value` in the ascending `column`, or −1. */
function indexOf(column: Int32Array, value: number): number {
  let low = 0;
  let high = column.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const at = column[middle];
    if (at === value) return middle;
    if (at < value) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

export class CodeImage {
  readonly base: number;
  /** Bytes of code. */
  readonly size: number;
  readonly tables: CodeTables;
  /** False once pages of replaced functions have been dropped: the code must not be read any more. */
  isComplete = true;

  constructor(base: number, size: number, tables: CodeTables) {
    this.base = base;
    this.size = size;
    this.tables = tables;
  }

  contains(address: number): boolean {
    return address >= this.base && address < this.base + this.size;
  }

  /** The call that returns to `address`, if the address is in this image. */
  callSiteAt(address: number): CodeSite | undefined {
    const { callReturn, callFrame, callPos, callSite } = this.tables;
    const index = indexOf(callReturn, address - this.base);
    return index < 0 ? undefined : { frame: callFrame[index], pos: callPos[index], site: callSite[index] };
  }

  /** The same for the unwinder. */
  unwindSiteAt(address: number): UnwindSite | undefined {
    const { callReturn, callFrame, callLanding, callCross } = this.tables;
    const index = indexOf(callReturn, address - this.base);
    if (index < 0) return undefined;
    const landing = callLanding[index];
    return { frame: callFrame[index], landing: landing < 0 ? 0 : this.base + landing, cross: callCross[index] === 1 };
  }

  /**
   * The trap site at `address`, if there is one: a faulting instruction, or the return address of a call of a trap
   * stub. Where a function ends in such a call and the next one begins with an access, both have one address, the call
   * first.
   */
  trapSiteAt(address: number, faulted: boolean): (CodeSite & { code: number }) | undefined {
    const { trapAt, trapCode, trapFrame, trapPos, trapSite } = this.tables;
    let index = indexOf(trapAt, address - this.base);
    if (index < 0) return undefined;
    const twin = faulted ? index + 1 : index - 1;
    if (trapAt[twin] === trapAt[index]) index = twin;
    return { code: trapCode[index], frame: trapFrame[index], pos: trapPos[index], site: trapSite[index] };
  }

  /** The defined function whose code holds `address`, or −1. */
  functionAt(address: number): number {
    const { functionStart, functionEnd } = this.tables;
    const offset = address - this.base;
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

  constructor(arena: CodeArena) {
    this.#arena = arena;
  }

  /** Opens a chunk of at least `bytes`; undefined if that is not possible. */
  readonly open = (bytes: number): OpenChunk | undefined => {
    this.release();
    return this.#chunk = this.#arena.open(bytes);
  };

  /** Makes the image of finished code, which is in the open chunk if `storage` is that chunk. */
  place({ bytes, tables, storage }: PlaceableCode): CodeImage {
    const chunk = this.#chunk;
    if (chunk === undefined || storage !== chunk) return placeImage(this.#arena, bytes, tables);
    resolvePolls(bytes, chunk.address, tables.pollAt, this.#arena.pollPage);
    chunk.publish(bytes.length);
    return new CodeImage(chunk.address, bytes.length, tables);
  }

  /** Frees the chunk, unless it has become the image. */
  release(): void {
    this.#chunk?.release();
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
