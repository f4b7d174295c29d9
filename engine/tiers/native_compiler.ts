/**
 * The compiler as machine code, on native threads without a JavaScript isolate. In: its code (portable/native_code.ts),
 * the thread of this realm, and an image whose valid bodies are to be compiled. Out: the image, once a native thread
 * has compiled the bodies.
 *
 *     JavaScript                                          native thread
 *     writes the module and the list of bodies
 *     starts it ────────────────────────────────────────▶ compileListed
 *     goes on; looks at the state now and then             │
 *     appends the bodies, finishes the image ◀─── STATUS ──┘
 *
 * An instance has its own VM context, memory and stack, and is freed after one job, for which it may have summarized
 * the bodies before. Its memory is a reservation with guard pages; its module is hostile input, so a trap or fault
 * (native_thread.ts) is an end of the job like any other. Code that would need JavaScript, for more memory than there
 * is, ends the job as well.
 *
 * Invariant: while the native thread runs, JavaScript neither enters the instance nor frees it.
 */
import { CONTEXT, GUARD_RESERVATION, MEMORY, RECORD, TABLE } from "../abi/context_layout.ts";
import { bodyBytes } from "../baseline/module_tables.ts";
import type { BegunImage } from "../compile/compile_options.ts";
import { now } from "../host/clocks.ts";
import { type Host, PROT } from "../host/host.ts";
import type { CompilerExports } from "../portable/compiler_interface.ts";
import type { NativeCompiler, NativeCompilerCode, NativeFunction } from "../portable/native_code.ts";
import { ListedBodies } from "../portable/listed_bodies.ts";
import { scanBodies } from "../portable/scan_bodies.ts";
import type { ContextBlock } from "../runtime/memory/context_arena.ts";
import type { GuestThread } from "../runtime/thread/guest_thread.ts";
import type { ModuleDescription } from "../translate/describe_module.ts";
import type { Summaries } from "../translate/summaries.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { callOnStack } from "./call_on_stack.ts";
import { hasChecksum } from "./native_checksum.ts";
import { NATIVE_SLACK_BYTES, NativeThread } from "./native_thread.ts";

/** Not more than Windows commits when it is reserved: no exception is dispatched onto other pages. */
const STACK_BYTES = 1 << 20;
const PAGE = 0x10000;
/** Accessible memory: for the workspaces, and for each byte of the module's bodies; most of it is never touched. */
const WORK_BYTES = 1 << 26;
const BYTES_PER_BODY_BYTE = 128;
const MAX_MEMORY_BYTES = 1 << 30;
/** Bytes at the start of the memory that JavaScript writes: the initial objects, and for each body that is compiled. */
const WRITTEN_BYTES = 1 << 20;
const WRITTEN_PER_BODY = 1 << 10;
/** Milliseconds for which bodies are appended at once, and a mask of the number of bodies after which time is read. */
const APPEND_MS = 4;
const LOOK_MASK = 15;

/** The compiler's code in the arena of this realm. */
interface PlacedCompiler {
  readonly native: NativeCompilerCode;
  readonly base: number;
  readonly data: Uint8Array;
}

/** The code that this realm has placed. */
let placed: PlacedCompiler | "damaged" | undefined;

/** Whether this realm has tried to place the code. */
export function isCompilerPlaced(): boolean {
  return placed !== undefined;
}

/** Places the code. Throws an Error if all copies of it are damaged, and a RangeError without memory. */
function place(thread: GuestThread, native: NativeCompiler): PlacedCompiler {
  if (placed === "damaged") throw new Error(DAMAGED);
  const mapped = native.file === undefined ? undefined : placeMapped(thread, native, native.file);
  if (mapped !== undefined) return mapped;
  for (const image of native.images()) {
    const code = placeIntact(thread, native, image);
    if (code !== undefined) return code;
  }
  placed = "damaged";
  throw new Error(DAMAGED);
}

/** Maps the code's file: nothing is copied. Undefined if the system refuses that, or if the file is damaged. */
function placeMapped(thread: GuestThread, native: NativeCompiler, path: string): PlacedCompiler | undefined {
  const { host, arena } = thread;
  const { imageBytes, codeBytes } = native;
  let file: { readonly image: number; readonly bytes: number };
  try {
    file = host.openImage(path);
  } catch {
    return undefined;
  }
  try {
    if (file.bytes !== imageBytes) return undefined;
    const base = arena.allocate(imageBytes);
    try {
      arena.publishMapped(base, imageBytes, file.image, 0);
      if (!hasChecksum(thread, base, imageBytes, native.checksum)) throw new Error(DAMAGED);
    } catch {
      arena.release(base, imageBytes);
      return undefined;
    }
    const data = dataOf(native, new Uint8Array(host.view(base, imageBytes)));
    arena.publishOpen(base, codeBytes, imageBytes);
    return { native, base, data };
  } finally {
    host.closeImage(file.image);
  }
}

/** A copy of the initial contents of the memory. */
function dataOf({ codeBytes, dataBytes }: NativeCompiler, image: Uint8Array): Uint8Array {
  return image.slice(codeBytes, codeBytes + dataBytes);
}

/** Places one copy of the code; undefined if it is damaged. */
function placeIntact(thread: GuestThread, native: NativeCompiler, image: Uint8Array): PlacedCompiler | undefined {
  const { imageBytes, codeBytes, checksum } = native;
  if (image.length !== imageBytes) return undefined;
  const chunk = thread.arena.open(imageBytes, true);
  if (chunk === undefined) throw new RangeError("There is no room for the compiler's machine code");
  try {
    chunk.view(imageBytes)!.set(image);
    if (!hasChecksum(thread, chunk.address, imageBytes, checksum)) return undefined;
    chunk.publish(codeBytes);
    return { native, base: chunk.address, data: dataOf(native, image) };
  } finally {
    chunk.release();
  }
}

const DAMAGED = "The compiler's machine code is damaged";

/** The memory of an instance, of which JavaScript sees a part: its engine counts views as memory in use. */
class CompilerMemory {
  readonly address: number;
  buffer: ArrayBuffer;
  readonly #host: Host;

  /** A memory of `bytes` bytes. */
  constructor(host: Host, bytes: number) {
    this.#host = host;
    this.address = host.reserve(GUARD_RESERVATION, PROT.NONE);
    host.protect(this.address, bytes, PROT.READ | PROT.WRITE);
    this.buffer = new ArrayBuffer(0);
  }

  /** Makes at least the first `bytes` bytes visible. */
  show(bytes: number): void {
    if (bytes <= this.buffer.byteLength) return;
    this.buffer = this.#host.view(this.address, Math.ceil(bytes / PAGE) * PAGE);
  }

  release(): void {
    this.#host.release(this.address, GUARD_RESERVATION);
  }
}

/** An instance of the compiler, for one job. */
export class NativeInstance {
  readonly exports: CompilerExports;
  readonly #thread: GuestThread;
  readonly #placed: PlacedCompiler;
  readonly #context: ContextBlock;
  readonly #memory: CompilerMemory;
  /** Size of the accessible memory. */
  readonly #bytes: number;
  readonly #stack: number;
  /** The call that the native thread runs. */
  #nativeThread: NativeThread | undefined;

  /**
   * Makes an instance with `bytes` of memory, of which JavaScript sees the start. Throws a RangeError without address
   * space or memory.
   */
  constructor(thread: GuestThread, placed: PlacedCompiler, bytes: number) {
    const { host } = thread;
    this.#bytes = bytes;
    this.#thread = thread;
    this.#placed = placed;
    this.#memory = new CompilerMemory(host, bytes);
    this.#stack = host.reserve(STACK_BYTES, PROT.READ | PROT.WRITE);
    this.#context = thread.contexts.allocate(placed.native.contextBytes + placed.native.elements.length * 8);
    this.#initContext(bytes);
    this.show(WRITTEN_BYTES);
    new Uint8Array(this.#memory.buffer).set(placed.data);
    this.#call(placed.native.start, []);
    this.exports = {
      memory: this.#memory,
      ...Object.fromEntries(
        Object.entries(placed.native.exports).map(([name, at]) => [name, (...args: number[]) => this.#call(at, args)]),
      ),
    } as unknown as CompilerExports;
    this.exports.limitMemory(bytes);
  }

  #initContext(bytes: number): void {
    const { native, base } = this.#placed;
    const { region, offset, address } = this.#context;
    this.#thread.initContext(region, offset, 0, 0, false);
    region.setWord(offset + CONTEXT.STACK_LIMIT, this.#stack + NATIVE_SLACK_BYTES);
    region.setWord(offset + native.memory + MEMORY.BASE, this.#memory.address);
    region.setWord(offset + native.memory + MEMORY.LENGTH, bytes);
    for (let k = 0; k < native.globals.length; k += 2) {
      region.i32[(offset + native.globals[k]) >> 2] = native.globals[k + 1];
    }
    region.i32.set(native.typeIds, (offset + native.typeIdsAt) >> 2);
    const { elements, records } = native;
    for (let k = 0; k < records.length; k += 3) {
      const record = offset + records[k];
      region.setWord(record + RECORD.CODE, base + records[k + 1]);
      region.setWord(record + RECORD.CONTEXT, address);
      region.i32[(record + RECORD.TYPE_ID) >> 2] = records[k + 2];
    }
    const table = native.contextBytes;
    for (const [k, record] of elements.entries()) {
      region.setWord(offset + table + k * 8, record === 0 ? 0 : address + record);
    }
    region.setWord(offset + native.table + TABLE.BASE, address + table);
    region.setWord(offset + native.table + TABLE.LENGTH, elements.length);
  }

  /** The summaries of the bodies of `valid`, which this thread scans. Throws an Error if the compiler traps. */
  summarize(valid: ValidModule): Summaries {
    const { exports } = this;
    this.show(WRITTEN_BYTES + bodyBytes(valid.funcs) + valid.funcs.length * WRITTEN_PER_BODY);
    const scan = (imported: number) => {
      exports.scanBodies(imported);
      this.#memory.show(exports.usedBytes());
    };
    return scanBodies({ ...exports, scanBodies: scan }, valid);
  }

  /** Lets JavaScript use at least the first `bytes` bytes of the memory. Throws a RangeError if there are less. */
  show(bytes: number): void {
    if (bytes > this.#bytes) throw new RangeError("The module is too large for the compiler's memory");
    this.#memory.show(bytes);
  }

  get #top(): number {
    return this.#stack + STACK_BYTES - 64;
  }

  #call({ start, thunk }: NativeFunction, args: readonly number[]): number {
    const { base } = this.#placed;
    const context = this.#context.address;
    return callOnStack(this.#thread, { code: base + start, thunk: base + thunk, context, top: this.#top }, args);
  }

  /** Calls a function in a native thread. Throws an Error if the system refuses it, a RangeError without memory. */
  start(name: string, args: readonly number[]): void {
    const { base, native } = this.#placed;
    const { start, thunk } = native.exports[name];
    const stack = { low: this.#stack, top: this.#top, high: this.#stack + STACK_BYTES };
    const call = { code: base + start, thunk: base + thunk, context: this.#context, stack };
    this.#nativeThread = new NativeThread(this.#thread, call, args);
  }

  /** Whether the native thread runs. */
  get isRunning(): boolean {
    return this.#nativeThread?.isRunning === true;
  }

  /** Waits for the end of the native thread; returns whether its function returned. */
  end(): boolean {
    const result = this.#nativeThread?.end();
    this.#nativeThread = undefined;
    if (result === undefined) return false;
    this.#memory.show(this.exports.usedBytes());
    return true;
  }

  /** Frees everything. No native thread may run. */
  release(): void {
    const { host, contexts } = this.#thread;
    this.#memory.release();
    host.release(this.#stack, STACK_BYTES);
    contexts.release(this.#context);
  }
}

/** What the bodies of an image have come to: "waiting" while they are compiled or appended. */
type Progress<Image> = { readonly image: Image } | "waiting" | "failed";

/** Abandoned instances, whose native thread may still run. */
const ABANDONED = new Set<NativeInstance>();

/** The bodies of an image that a native thread compiles. */
export class NativeBodies<Image> {
  readonly #instance: NativeInstance;
  readonly #bodies: ListedBodies;
  readonly #begun: BegunImage<Image>;
  #stage: "running" | "appending" | "ended" = "running";
  /** The number of bodies that are appended. */
  #appended = 0;

  /** Starts the native thread. Throws an Error if the system refuses it. */
  constructor(instance: NativeInstance, begun: BegunImage<Image>, description: ModuleDescription) {
    const { work, code, bodies } = begun;
    this.#instance = instance;
    this.#begun = begun;
    this.#bodies = new ListedBodies(instance.exports, work, description, code, bodies);
    instance.start("compileListed", this.#bodies.bits);
  }

  /**
   * Makes progress without blocking for long; must not be called again after another result than "waiting". "failed":
   * the native thread could not compile all bodies.
   */
  advance(): Progress<Image> {
    try {
      if (this.#stage === "running") {
        if (this.#instance.isRunning) return "waiting";
        this.#stage = "appending";
        if (!this.#instance.end() || !this.#bodies.isDone) return this.#fail();
      }
      if (!this.#append()) return "waiting";
      const image = this.#begun.finish();
      this.#end();
      return { image };
    } catch {
      return this.#fail();
    }
  }

  /** Appends bodies for some time; returns whether all are appended. */
  #append(): boolean {
    const { note, bodies: { length } } = this.#begun;
    const end = now() + APPEND_MS;
    while (this.#appended < length) {
      note(this.#appended, this.#bodies.take(this.#appended));
      if ((++this.#appended & LOOK_MASK) === 0 && now() >= end) return false;
    }
    return true;
  }

  #fail(): "failed" {
    this.#end();
    return "failed";
  }

  #end(): void {
    if (this.#stage !== "ended") this.#instance.release();
    this.#stage = "ended";
  }

  /** Frees everything, as soon as the native thread has ended. */
  abandon(): void {
    if (this.#stage === "running") ABANDONED.add(this.#instance);
    else this.#end();
    this.#stage = "ended";
    freeAbandoned();
  }
}

function freeAbandoned(): void {
  for (const instance of ABANDONED) {
    if (instance.isRunning) continue;
    instance.end();
    instance.release();
    ABANDONED.delete(instance);
  }
}

/**
 * Makes an instance for a module with `bytesOfBodies` bytes of bodies, for its owner to release. Throws a RangeError
 * without address space or memory, and an Error if the code is damaged.
 */
export function makeInstance(
  thread: GuestThread,
  native: NativeCompiler,
  bytesOfBodies: number,
): NativeInstance {
  const { host } = thread;
  freeAbandoned();
  const wanted = WORK_BYTES + bytesOfBodies * BYTES_PER_BODY_BYTE;
  const bytes = Math.ceil(Math.min(wanted, MAX_MEMORY_BYTES) / PAGE) * PAGE;
  const compiler = placed = placed instanceof Object ? placed : place(thread, native);
  return host.releasingOnError(() => new NativeInstance(thread, compiler, bytes));
}

/**
 * Starts to compile the bodies of `begun` in a native thread; `description` is that of its module. The bodies own the
 * instance from now on. Throws an Error if the system refuses the thread, and a RangeError for a module that is too
 * large for the instance's memory; the instance is then the caller's.
 */
export function startNativeBodies<Image>(
  instance: NativeInstance,
  begun: BegunImage<Image>,
  description: ModuleDescription,
): NativeBodies<Image> {
  const { words, bodies } = description;
  const { code: { functionStart } } = begun;
  instance.show(WRITTEN_BYTES + words.byteLength + bodies.length + functionStart.length * WRITTEN_PER_BODY);
  return new NativeBodies(instance, begun, description);
}
