/**
 * Machine code under construction: the bytes of one image (all functions, thunks and native builtins of a module, one
 * after another), the references to patch when it is placed, and the tables that describe it at run time.
 * Position-independent: all references inside the image are relative; everything outside is reached through the VM
 * context.
 *
 * Tables are columns sorted by code offset once the image is complete (functions are emitted in ascending order):
 *
 *   - call sites: return offset → frame size in bytes (from the stack pointer at the call to the caller's return
 *     address), wasm position and inline site: for stack traces, exception handlers, GC roots;
 *   - trap sites: offset of an instruction that may fault (or return offset of a call to a trap stub) → trap code,
 *     position, frame size.
 */
import { grown } from "../base/columns.ts";
/** Relocation kinds. */
export const RELOC = {
  /**
   * 32-bit displacement to function `target` (a defined function's index, imports not counted), relative to its own
   * end.
   */
  FUNCTION: 0,
  /** The same to the native builtin or shared stub `target` (see StubName). */
  STUB: 1,
  /** The same to the poll page of the code arena; resolved when the image is placed. */
  POLL_PAGE: 2,
  /** The same to offset `target` of the image. */
  IMAGE: 3,
} as const;

/**
 * Code that every image carries once, at its start. PARK is the common end of code that leaves for the host, POLL parks
 * with all registers saved, CONSTANTS is data, ALLOCATE parks for gc_allocate with all registers saved, COMPILE for
 * compile_body in the same way, and continues in the code that it returns; `BUILTIN + row` is a builtin's code, `TRAP +
 * code` the trap stub of a code.
 */
export const STUB = { PARK: 0, POLL: 1, CONSTANTS: 2, ALLOCATE: 3, COMPILE: 4, BUILTIN: 16, TRAP: 64 } as const;

export const CALL_COLUMNS = 6;
export const TRAP_COLUMNS = 5;

export class MachineCode {
  bytes: Uint8Array = new Uint8Array(1 << 16);
  length = 0;

  /** Distance in bytes from the start of the image to the poll page, if the bytes are at the place of the image. */
  pollDistance = 0;

  relocAt: number[] = [];
  relocKind: number[] = [];
  relocTarget: number[] = [];
  /** Offsets of the displacements that refer to the poll page; `relocateImage` fills it. */
  pollAt: number[] = [];

  readonly #calls = new Rows(CALL_COLUMNS);
  readonly #traps = new Rows(TRAP_COLUMNS);

  /** Code offset per defined function (−1 until emitted) and its end. */
  functionStart: Int32Array;
  functionEnd: Int32Array;
  /** Frame size in bytes, valid anywhere in the body: for faults at places that no site lists (stack overflow). */
  functionFrame: Int32Array;
  /** The alignment of the function that was emitted or appended last. */
  alignment = 1;
  /** Registers written by a defined function that has been emitted, callees included: masks, with known = 1. */
  writtenGeneral: Int32Array;
  writtenVector: Int32Array;
  writtenKnown: Uint8Array;
  /** Code offset per stub number (STUB), −1 if absent. */
  stubStart: Int32Array = new Int32Array(128).fill(-1);
  /** Code offset of the entry thunk (host → wasm) per signature id, −1 if absent. */
  entryThunk: Int32Array;
  /** Code offset of the host-call thunk (wasm → host) per signature id, −1 if absent. */
  hostThunk: Int32Array;

  /**
   * Rank of every defined function in the order of compilation, when several threads compile: they know of a callee
   * only facts that one thread would know at that point. Absent for one thread.
   */
  rank: Int32Array | undefined;
  /**
   * The defined function whose code is needed before the function that was selected last can be compiled; −1: none. Its
   * callee `knows` sets it, and the code selected since is of no use.
   */
  missing = -1;

  /**
   * If set, emission stores here, per defined function, the starts of its blocks (−1: no code of its own) and, last, of
   * its out-of-line code: for tools.
   */
  blockStarts: Int32Array[] | undefined;

  /**
   * If set, emission stores here the wasm positions of the code of each defined function that has an entry: rows of
   * code offset, position and inline site, ascending by offset. For tools.
   */
  positions: Map<number, Int32Array> | undefined;

  constructor(definedFuncs: number, signatures: number) {
    this.functionStart = new Int32Array(definedFuncs).fill(-1);
    this.functionEnd = new Int32Array(definedFuncs).fill(-1);
    this.functionFrame = new Int32Array(definedFuncs);
    this.writtenGeneral = new Int32Array(definedFuncs);
    this.writtenVector = new Int32Array(definedFuncs);
    this.writtenKnown = new Uint8Array(definedFuncs);
    this.entryThunk = new Int32Array(signatures).fill(-1);
    this.hostThunk = new Int32Array(signatures).fill(-1);
  }

  /**
   * Whether the registers that `callee` writes are known, for code of `caller` (defined functions). Sets `missing` if
   * they are not, but would be if one thread compiled.
   */
  knows(callee: number, caller: number): boolean {
    const known = this.writtenKnown[callee] !== 0;
    const { rank } = this;
    if (rank === undefined) return known;
    const before = rank[callee] < rank[caller];
    if (before && !known && this.missing < 0) this.missing = callee;
    return before;
  }

  /** Forgets all code, and keeps the facts about functions. */
  clear(): void {
    this.length = 0;
    this.relocAt.length = 0;
    this.relocKind.length = 0;
    this.relocTarget.length = 0;
    this.#calls.clear();
    this.#traps.clear();
  }

  /**
   * The call sites as rows of CALL_COLUMNS words, ascending by return offset; not to be changed:
   *
   *     return offset · frame size · wasm position · inline site · code offset where an exception that the call lets
   *     out is handled (−1: none) · 1 if the callee belongs to another instance and the caller's VM context is above
   *     the return address
   */
  get callRows(): Int32Array {
    return this.#calls.rows;
  }
  /**
   * The trap sites as rows of TRAP_COLUMNS words, ascending by offset: offset · trap code · frame · position · site.
   */
  get trapRows(): Int32Array {
    return this.#traps.rows;
  }

  /** The same in arrays that do not change any more. */
  get callParts(): readonly Int32Array[] {
    return this.#calls.parts;
  }
  get trapParts(): readonly Int32Array[] {
    return this.#traps.parts;
  }

  /** Makes room for `more` bytes beyond `length`. */
  reserve(more: number): void {
    const size = this.length + more;
    if (size > this.bytes.length) this.grow(size);
  }

  /** Makes room for `size` bytes. */
  grow(size: number): void {
    this.bytes = grown(this.bytes, Math.max(size, this.bytes.length * 2));
  }

  addReloc(at: number, kind: number, target: number): void {
    this.relocAt.push(at);
    this.relocKind.push(kind);
    this.relocTarget.push(target);
  }

  addCallSite(returnOffset: number, frame: number, pos: number, site: number, landing = -1, cross = 0): void {
    const at = this.#calls.add(), words = this.#calls.words;
    words[at] = returnOffset;
    words[at + 1] = frame;
    words[at + 2] = pos;
    words[at + 3] = site;
    words[at + 4] = landing;
    words[at + 5] = cross;
  }

  /** Appends rows of sites whose offsets are beyond all others. */
  appendSites(calls: Int32Array, traps: Int32Array): void {
    this.#calls.append(calls);
    this.#traps.append(traps);
  }

  addTrapSite(at: number, code: number, frame: number, pos: number, site: number): void {
    const row = this.#traps.add(), words = this.#traps.words;
    words[row] = at;
    words[row + 1] = code;
    words[row + 2] = frame;
    words[row + 3] = pos;
    words[row + 4] = site;
  }
}

/**
 * A table that grows row by row, or by many rows at a time: sites come by the ten thousand. Rows that are appended stay
 * in arrays of their own, so that each is copied once.
 */
class Rows {
  words: Int32Array = new Int32Array(1024);
  readonly #width: number;
  #length = 0;
  readonly #parts: Int32Array[] = [];

  constructor(width: number) {
    this.#width = width;
  }

  /** Index in `words` of a new row. */
  add(): number {
    const at = this.#length;
    this.#length = at + this.#width;
    if (this.#length > this.words.length) this.words = grown(this.words, this.#length * 2);
    return at;
  }

  append(rows: Int32Array): void {
    this.#closePart();
    if (rows.length > 0) this.#parts.push(rows.slice());
  }

  clear(): void {
    this.#length = 0;
    this.#parts.length = 0;
  }

  /** All rows, in arrays that do not change any more. */
  get parts(): readonly Int32Array[] {
    this.#closePart();
    return this.#parts.slice();
  }

  /** All rows; a view if none were appended. */
  get rows(): Int32Array {
    const last = this.words.subarray(0, this.#length);
    if (this.#parts.length === 0) return last;
    let total = last.length;
    for (const part of this.#parts) total += part.length;
    const joined = new Int32Array(total);
    let at = 0;
    for (const part of this.#parts) {
      joined.set(part, at);
      at += part.length;
    }
    joined.set(last, at);
    return joined;
  }

  #closePart(): void {
    if (this.#length > 0) this.#parts.push(this.words.slice(0, this.#length));
    this.#length = 0;
  }
}
