/**
 * Machine code under construction: the bytes of one image (all functions, thunks and native builtins of a module, one after
 * another), what must be patched when it is placed, and the tables that explain it at run time. Position-independent: all
 * references inside the image are relative, everything outside is reached through the VM context.
 *
 * Tables are columns sorted by code offset once the image is complete (functions are emitted in ascending order):
 * - call sites: return offset → frame size in bytes (from the stack pointer at the call to the caller's return address), wasm
 *   position and inline site: for stack traces, exception handlers, GC roots;
 * - trap sites: offset of an instruction that may fault (or return offset of a call to a trap stub) → trap code, position,
 *   frame size.
 */

/** Relocation kinds. */
export const RELOC = {
  /** 32-bit displacement to function `target` (a defined function's index, imports not counted), relative to its own end. */
  FUNCTION: 0,
  /** The same to the native builtin or shared stub `target` (see StubName). */
  STUB: 1,
  /** The same to the poll page of the code arena; resolved when the image is placed. */
  POLL_PAGE: 2,
} as const;

/**
 * Code that every image carries once, at its start. PARK is the common end of everything that leaves for the host, POLL parks with
 * all registers saved, CONSTANTS is data; `BUILTIN + row` is a builtin's code, `TRAP + code` the trap stub of a code.
 */
export const STUB = { PARK: 0, POLL: 1, CONSTANTS: 2, BUILTIN: 16, TRAP: 64 } as const;

export class MachineCode {
  bytes: Uint8Array = new Uint8Array(1 << 16);
  length = 0;

  relocAt: number[] = [];
  relocKind: number[] = [];
  relocTarget: number[] = [];
  /** Offsets of the displacements that refer to the poll page, once `relocate` has sorted them out. */
  pollAt: number[] = [];

  /** Call sites, ascending by return offset. */
  callReturn: number[] = [];
  callFrame: number[] = [];
  callPos: number[] = [];
  callSite: number[] = [];
  /** Code offset where an exception that the call lets out is handled, −1 for none. */
  callLanding: number[] = [];
  /** 1: the callee belongs to another instance, and the caller's VM context lies above the return address. */
  callCross: number[] = [];

  /** Trap sites, ascending by offset. */
  trapAt: number[] = [];
  trapCode: number[] = [];
  trapFrame: number[] = [];
  trapPos: number[] = [];
  trapSite: number[] = [];

  /** Code offset per defined function (−1 until emitted) and its end. */
  functionStart: Int32Array;
  functionEnd: Int32Array;
  /** Frame size in bytes, valid anywhere in the body: for faults at places that no site lists (stack overflow). */
  functionFrame: Int32Array;
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

  /** Makes room for `more` bytes beyond `length`. */
  reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return;
    const next = new Uint8Array(Math.max(this.length + more, this.bytes.length * 2));
    next.set(this.bytes.subarray(0, this.length));
    this.bytes = next;
  }

  addReloc(at: number, kind: number, target: number): void {
    this.relocAt.push(at);
    this.relocKind.push(kind);
    this.relocTarget.push(target);
  }

  addCallSite(returnOffset: number, frame: number, pos: number, site: number, landing = -1, cross = 0): void {
    this.callReturn.push(returnOffset);
    this.callFrame.push(frame);
    this.callPos.push(pos);
    this.callSite.push(site);
    this.callLanding.push(landing);
    this.callCross.push(cross);
  }

  addTrapSite(at: number, code: number, frame: number, pos: number, site: number): void {
    this.trapAt.push(at);
    this.trapCode.push(code);
    this.trapFrame.push(frame);
    this.trapPos.push(pos);
    this.trapSite.push(site);
  }
}
