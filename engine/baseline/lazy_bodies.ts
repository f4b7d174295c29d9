/**
 * Lazy compilation: the baseline tier compiles a body when it is first called. In: a module whose bodies have been
 * validated, and an image with an entry per function. Out: the code of one function at a time, behind the rest of the
 * image. Invariant: JavaScript is in control, so no thread executes the pages that change.
 *
 *     entry ──▶ address in the function's slot:  the gate ──▶ machine code (lazy_routine.ts) ──▶ the code
 *                                                the stub COMPILE ──▶ here ──▶ the code
 *                                                the code
 *
 * The gate leads to the stub as well until the module and its bodies are in the memory of a kernel that machine code
 * can call. Slots and the routine's block are data at the end of the image's place: the pages with the entries do not
 * change.
 */
import type { ContextLayout } from "../abi/context_layout.ts";
import { STUB } from "../codegen/machine_code.ts";
import { Bug } from "../base/errors.ts";
import type { GrowingChunk } from "../host/memory/code_arena.ts";
import type { CodeImage } from "../link/image.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { BytesView, type Func, lengthOf } from "../wasm/module.ts";
import {
  evictTenant,
  freeLargeKernels,
  type Kernel,
  type KernelTarget,
  type Tenant,
  withKernel,
} from "./kernel_forms.ts";
import * as layout from "./kernel/layout.ts";
import { LAZY_BLOCK } from "./lazy_routine.ts";
import {
  bodyBytes,
  type KernelMemory,
  type KernelOptions,
  startsAt,
  wordsAt,
  writeBodies,
  writeTables,
} from "./module_tables.ts";

/** The parts of a compilation that its lazy bodies need. */
export interface LazyPlan {
  readonly context: ContextLayout;
  readonly options: KernelOptions;
  readonly target: KernelTarget;
  /** Offsets in the image of the stubs, by number. */
  readonly stubs: Int32Array;
  /** Offsets in the image of the gate and of its code that leads to the stub COMPILE (LazyGate), if there is one. */
  readonly gate: { readonly at: number; readonly slow: number } | undefined;
  /** The place of the image. */
  readonly chunk: GrowingChunk;
}

/** The alignment of code, as the kernel aligns functions. */
export const LAZY_ALIGNMENT = 16;
/** Size in bytes of a slot. */
export const SLOT_BYTES = 8;
/** The slots begin at a multiple of this, with any size of pages. */
const SLOTS_ALIGNMENT = 1 << 16;

/**
 * Bodies of at least so many bytes are compiled with their module: a call looks at its limits before it compiles a
 * body, and not meanwhile.
 */
const LARGE_BODY_BYTES = 1 << 17;

/** The offset of the slots of `count` functions in the place of their image. */
export function slotsOffset({ capacity }: GrowingChunk, count: number): number {
  const last = capacity - count * SLOT_BYTES - LAZY_BLOCK.SIZE;
  return last - last % SLOTS_ALIGNMENT;
}

/** The offset of the block of machine code that compiles bodies, after the slots. */
export function blockOffset(chunk: GrowingChunk, count: number): number {
  return slotsOffset(chunk, count) + count * SLOT_BYTES;
}

/**
 * Bytes of bodies up to which all of them are copied to the kernel's memory, so that machine code finds them there;
 * JavaScript copies those of a larger module one by one.
 */
const MAX_COPIED = 1 << 24;

/** Views that are large enough for most bodies, in bytes. */
const VIEW_BYTES = 1 << 16;

/**
 * The tables of a module in the memory of a kernel, which remain there from one lazy body to the next, and views of
 * that memory: making them anew takes longer than compiling a small body.
 */
class Tenancy {
  readonly #memory: KernelMemory;
  /** The address after the tables. */
  readonly #end: number;
  readonly #rows: number;
  readonly #header: Int32Array;
  #module!: Uint8Array;
  #words!: Int32Array;
  #code!: Uint8Array;
  #calls!: Int32Array;
  #traps!: Int32Array;
  /** The words at H_RESULT. */
  result!: Int32Array;

  constructor(memory: KernelMemory, end: number) {
    this.#memory = memory;
    this.#end = end;
    this.#header = wordsAt(memory, 0, layout.OPCODES);
    this.#rows = this.#header[layout.H_BODIES >> 2];
    this.#open(VIEW_BYTES);
  }

  /** Opens the views, with room for a body of `bytes` bytes. */
  #open(bytes: number): void {
    const memory = this.#memory;
    // The highest address first: growth invalidates views.
    this.#module = memory.view(layout.MODULE, this.#end - layout.MODULE + bytes);
    this.#words = new Int32Array(this.#module.buffer, this.#module.byteOffset, this.#module.length >> 2);
    this.#code = memory.view(layout.CODE, VIEW_BYTES);
    this.#calls = wordsAt(memory, layout.CALLS, VIEW_BYTES);
    this.#traps = wordsAt(memory, layout.TRAPS, VIEW_BYTES);
    this.result = wordsAt(memory, layout.H_RESULT, layout.RESULT_SIZE);
  }

  /** Writes a body after the tables, over the one before. */
  writeBody(index: number, { body }: Func): void {
    const length = lengthOf(body);
    const at = this.#end - layout.MODULE;
    if (at + length > this.#module.length) this.#open(length);
    const bytes = body instanceof BytesView ? body.source.subarray(body.start, body.end) : body.bytes;
    this.#module.set(bytes, at);
    const row = (this.#rows - layout.MODULE + index * layout.BODY_ROW) >> 2;
    this.#words[row + layout.BODY_START / 4] = this.#end;
    this.#words[row + layout.BODY_END / 4] = this.#end + length;
    this.#words[row + layout.BODY_OFFSET / 4] = body.offset;
  }

  /** The rows of the journal, which is empty afterwards. */
  takeJournal(): Int32Array {
    const bytes = this.#header[layout.H_JOURNAL_END >> 2] - layout.JOURNAL;
    this.#header[layout.H_JOURNAL_END >> 2] = layout.JOURNAL;
    return bytes === 0 ? NO_ROWS : wordsAt(this.#memory, layout.JOURNAL, bytes).slice();
  }

  /** The first `bytes` bytes of the code that was compiled last. */
  code(bytes: number): Uint8Array {
    return bytes <= VIEW_BYTES ? this.#code.subarray(0, bytes) : this.#memory.view(layout.CODE, bytes);
  }

  /** Copies of rows of call sites, between two addresses. */
  calls(from: number, end: number): Int32Array {
    return rowsOf(this.#memory, this.#calls, layout.CALLS, { from, end });
  }

  /** The same of trap sites. */
  traps(from: number, end: number): Int32Array {
    return rowsOf(this.#memory, this.#traps, layout.TRAPS, { from, end });
  }
}

const NO_ROWS = new Int32Array();

/** A copy of words of the region at `origin`, of which `view` shows the first VIEW_BYTES. */
function rowsOf(
  memory: KernelMemory,
  view: Int32Array,
  origin: number,
  { from, end }: { from: number; end: number },
): Int32Array {
  if (end === from) return NO_ROWS;
  const words = end - origin <= VIEW_BYTES ? view : wordsAt(memory, origin, end - origin);
  return words.slice((from - origin) >> 2, (end - origin) >> 2);
}

/** The result of `action`; undefined if there is no memory for it. */
function unlessFull<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** The kernel in whose memory a module is. */
interface Residence {
  readonly kernel: Kernel;
  readonly tenancy: Tenancy;
  /** Whether machine code calls the kernel: all bodies are in its memory. */
  readonly isDirect: boolean;
}

/** The lazy bodies of a module. They must not refer to the compiled module, whose collection frees the image. */
export class LazyBodies implements Tenant {
  readonly #valid: ValidModule;
  readonly #plan: LazyPlan;
  readonly #image: CodeImage;
  /** The offsets of the functions' entries. */
  readonly #entries: Int32Array;
  /** The data of the chunk: slots, then the block. */
  readonly #words: Uint32Array;
  /** Called after code has been added to the image. */
  readonly #added: () => void;
  /** The offset of the slots, at which the code must end. */
  readonly #end: number;
  #residence: Residence | undefined;

  /** Throws RangeError where the system refuses access to the slots. */
  constructor(valid: ValidModule, plan: LazyPlan, image: CodeImage, added: () => void) {
    const { chunk, gate, stubs } = plan;
    const count = valid.funcs.length;
    this.#valid = valid;
    this.#plan = plan;
    this.#image = image;
    this.#added = added;
    this.#entries = image.tables.functionStart.slice();
    this.#end = slotsOffset(chunk, count);
    this.#words = chunk.data(this.#end, chunk.capacity - this.#end);
    chunk.onRelease = () => this.#drop();
    for (let k = 0; k < count; k++) this.#lead(k, gate === undefined ? stubs[STUB.COMPILE] : gate.at);
    if (gate !== undefined) {
      this.#setBlock(LAZY_BLOCK.SLOW, image.base + gate.slow);
      this.#setBlock(LAZY_BLOCK.ROUTINE, image.base + gate.slow);
      this.#setBlock(LAZY_BLOCK.IMAGE, image.base);
      this.#setBlock(LAZY_BLOCK.SLOTS, image.base + this.#end);
      image.update = () => this.#takeJournal();
    }
    valid.funcs.forEach(({ body }, k) => {
      if (lengthOf(body) >= LARGE_BODY_BYTES) this.compile(k);
    });
  }

  /**
   * The address of a function's code, which is compiled now unless it has been; undefined if the kernel or the place of
   * the image has no room for it.
   */
  compile(index: number): number | undefined {
    const { base, tables } = this.#image;
    if (tables.functionStart[index] === this.#entries[index] && !this.#compile(index)) return undefined;
    return base + tables.functionStart[index];
  }

  leave(): void {
    this.#takeJournal();
    if (this.#residence?.isDirect === true) this.#setBlock(LAZY_BLOCK.ROUTINE, this.#block(LAZY_BLOCK.SLOW));
    this.#residence = undefined;
  }

  /** The image is freed. */
  #drop(): void {
    if (this.#residence === undefined) return;
    this.#residence.kernel.tenant = undefined;
    this.#residence = undefined;
    freeLargeKernels(this.#plan.target);
  }

  /** Returns false if there is no room. */
  #compile(index: number): boolean {
    return unlessFull(() => withKernel(this.#plan.target, (kernel) => this.#compileWith(kernel, index), this)) ?? false;
  }

  /** Returns false if the system refuses access to the pages. */
  #place(offset: number, code: Uint8Array): boolean {
    return unlessFull(() => {
      this.#plan.chunk.write(offset, code);
      return true;
    }) ?? false;
  }

  #compileWith(kernel: Kernel, index: number): boolean {
    const { tenancy, isDirect } = this.#residence?.kernel === kernel ? this.#residence : this.#moveIn(kernel);
    if (!isDirect) tenancy.writeBody(index, this.#valid.funcs[index]);
    const base = this.#next;
    kernel.compileLazily(index, base);
    const { result } = tenancy;
    const status = result[layout.RESULT_STATUS >> 2];
    if (status === layout.STATUS_INVALID) throw new Bug(`The baseline compiler rejects body ${index}, which is valid`);
    if (status !== layout.STATUS_DONE) return false;
    if (result[layout.RESULT_RELOCATIONS_END >> 2] !== layout.RELOCATIONS) {
      throw new Bug("Lazy code has an unresolved reference");
    }
    const start = result[layout.RESULT_START >> 2];
    const end = result[layout.RESULT_END >> 2];
    const isPlaced = end <= this.#end && this.#place(base, tenancy.code(end - base));
    if (!isPlaced) {
      evictTenant(kernel); // its tables say that the code exists
      return false;
    }
    const calls = tenancy.calls(layout.CALLS, result[layout.RESULT_CALLS_END >> 2]);
    const traps = tenancy.traps(layout.TRAPS, result[layout.RESULT_TRAPS_END >> 2]);
    this.#image.add({ index, start, end, calls, traps });
    this.#setBlock(LAZY_BLOCK.NEXT, this.#next);
    this.#lead(index, start);
    this.#added();
    return true;
  }

  /** The offset at which the next code begins. */
  get #next(): number {
    return (this.#image.size + LAZY_ALIGNMENT - 1) & -LAZY_ALIGNMENT;
  }

  /** Adds the bodies that machine code has had compiled to the image. */
  #takeJournal(): void {
    if (this.#residence?.isDirect !== true) return;
    const { kernel, tenancy } = this.#residence;
    const rows = tenancy.takeJournal();
    if (rows.length === 0) return;
    const WIDTH = layout.JOURNAL_ROW / 4;
    const isRefused = this.#block(LAZY_BLOCK.REFUSED) !== 0;
    const end = isRefused ? rows.length - WIDTH : rows.length;
    let callsAt: number = layout.CALLS;
    let trapsAt: number = layout.TRAPS;
    for (let at = 0; at < end; at += WIDTH) {
      const [index, start, codeEnd, callsEnd, trapsEnd] = rows.subarray(at, at + WIDTH);
      const calls = tenancy.calls(callsAt, callsEnd);
      const traps = tenancy.traps(trapsAt, trapsEnd);
      this.#image.add({ index, start, end: codeEnd, calls, traps });
      [callsAt, trapsAt] = [callsEnd, trapsEnd];
    }
    this.#added();
    if (!isRefused) return;
    this.#setBlock(LAZY_BLOCK.REFUSED, 0);
    evictTenant(kernel); // its tables say that the code exists
  }

  /** Lets the slot of a function lead to `offset` of the image. */
  #lead(index: number, offset: number): void {
    this.#set(2 * index, this.#image.base + offset);
  }

  /** The address, or the number, in a field of the block. */
  #block(field: number): number {
    const at = this.#blockAt(field);
    return this.#words[at] + this.#words[at + 1] * 0x1_0000_0000;
  }

  #setBlock(field: number, value: number): void {
    this.#set(this.#blockAt(field), value);
  }

  #blockAt(field: number): number {
    return 2 * this.#entries.length + (field >> 2);
  }

  #set(at: number, value: number): void {
    this.#words[at] = value;
    this.#words[at + 1] = value / 0x1_0000_0000;
  }

  /** Writes the module's tables to a kernel's memory. */
  #moveIn(kernel: Kernel): Residence {
    if (this.#residence !== undefined) evictTenant(this.#residence.kernel);
    evictTenant(kernel);
    const { memory, routine } = kernel;
    const { context, options, stubs, gate, chunk } = this.#plan;
    const { funcs } = this.#valid;
    const end = writeTables(memory, this.#valid, context, options);
    wordsAt(memory, layout.STUBS, layout.STUBS_END - layout.STUBS).set(stubs);
    const header = wordsAt(memory, 0, layout.OPCODES);
    header[layout.H_POLL_DISTANCE >> 2] = chunk.pollDistance;
    header[layout.H_JOURNAL_END >> 2] = layout.JOURNAL;
    header[layout.H_CODE_LIMIT >> 2] = this.#end;
    startsAt(memory, this.#entries.length).set(this.#image.tables.functionStart);
    const isDirect = gate !== undefined && routine !== undefined && bodyBytes(funcs) <= MAX_COPIED;
    if (isDirect) {
      writeBodies(memory, this.#valid, end, { first: 0, end: funcs.length });
      this.#setBlock(LAZY_BLOCK.CONTEXT, routine.context);
      this.#setBlock(LAZY_BLOCK.CODE, routine.code);
      this.#setBlock(LAZY_BLOCK.STACK, routine.stack);
      this.#setBlock(LAZY_BLOCK.MEMORY, routine.memory);
      this.#setBlock(LAZY_BLOCK.TRAP, routine.trap);
      this.#setBlock(LAZY_BLOCK.NEXT, this.#next);
      this.#setBlock(LAZY_BLOCK.ROUTINE, routine.routine);
    }
    kernel.tenant = this;
    return this.#residence = { kernel, tenancy: new Tenancy(memory, end), isDirect };
  }
}
