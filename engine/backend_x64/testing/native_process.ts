/**
 * Runs compiled code in this process, for tests of the backend only: maps the process stubs, a thread state, a guest
 * stack and a memory behind guard pages, places images, and calls functions through the real `call` and `resume` stubs.
 * Linux on x86-64.
 *
 * The engine's own host/ and runtime/ do this properly; this file lets the backend be tested without them.
 */
import type { CodegenContext } from "../../codegen/target.ts";
import type { MachineCode } from "../../codegen/machine_code.ts";
import { BUILTIN_ROWS } from "../../abi/builtins.ts";
import { CONTEXT, FAULT_WORDS, MEMORY, OLD_HANDLERS, RECORD, STATUS, THREAD } from "../../abi/context_layout.ts";
import { type Signature, TY } from "../../ir/types.ts";
import { STACK_SLACK } from "../abi.ts";
import { buildProcessStubs } from "../process_stubs.ts";

const SYMBOLS = {
  mmap: { parameters: ["pointer", "usize", "i32", "i32", "i32", "i64"], result: "pointer" },
  mprotect: { parameters: ["pointer", "usize", "i32"], result: "i32" },
  sigaction: { parameters: ["i32", "buffer", "buffer"], result: "i32" },
} as const;

/** Whether code for this target can run on this machine. */
export const CAN_RUN: boolean = Deno.build.os === "linux" && Deno.build.arch === "x86_64";

const READ_WRITE = 3;
const READ_EXECUTE = 5;
const PRIVATE_ANONYMOUS = 0x22;
const NO_RESERVE = 0x4000;
const ARENA_SIZE = 1 << 24;
const STACK_SIZE = 1 << 18;
const GUARD = 4096;
const MEMORY_RESERVED = (8n << 30n) + 65536n;
/** Accessible bytes of memory 0. */
export const MEMORY_BYTES = 65536;

/** The outcome of a call. */
interface Outcome {
  status: number;
  trap: number;
  results: bigint[];
}

/** A host function or builtin: takes and returns bit patterns. */
type HostFunction = (args: bigint[], context: number) => bigint[];

export class NativeProcess {
  readonly #libc = Deno.dlopen("libc.so.6", SYMBOLS);
  readonly #arena: Region;
  readonly #call: Deno.UnsafeFnPointer<{ readonly parameters: readonly ["pointer"]; readonly result: "i32" }>;
  readonly #resume: Deno.UnsafeFnPointer<{ readonly parameters: readonly ["pointer"]; readonly result: "i32" }>;
  readonly #trapExit: bigint;
  readonly #tailReturn: bigint;
  #used: number;
  readonly thread: Region;
  readonly stack: Region;
  readonly memory: Uint8Array<ArrayBuffer>;
  readonly memoryBase: bigint;
  hosts: HostFunction[] = [(_args) => []];
  builtins: Record<string, HostFunction> = {};

  constructor() {
    const stubs = buildProcessStubs("linux");
    this.#arena = this.#map(ARENA_SIZE, READ_WRITE);
    this.#arena.bytes.set(stubs.bytes);
    this.#used = (stubs.bytes.length + 4095) & ~4095;
    const arena = this.#arena;
    // Other realms of the process have handlers, too: each forwards to its predecessor.
    const previous = this.#map(4096, READ_WRITE);
    const words = stubs.faultWords;
    arena.view.setBigUint64(words + FAULT_WORDS.START, arena.address + BigInt(this.#used), true);
    arena.view.setBigUint64(words + FAULT_WORDS.END, arena.address + BigInt(ARENA_SIZE), true);
    arena.view.setBigUint64(words + FAULT_WORDS.LANDING, arena.address + BigInt(stubs.faultLanding), true);
    arena.view.setBigUint64(words + FAULT_WORDS.OLD_HANDLERS, previous.address, true);
    this.#libc.symbols.mprotect(arena.pointer, BigInt(this.#used), READ_EXECUTE);
    const handler = arena.address + BigInt(stubs.faultHandler);
    for (const [signal, at] of [[11, OLD_HANDLERS.SEGV], [7, OLD_HANDLERS.BUS]] as const) {
      // Installed first, so that faults outside the guest reach their handler meanwhile; the last replacement counts.
      previous.view.setBigUint64(at, this.#signalHandler(signal), true);
      previous.view.setBigUint64(at, this.#installHandler(signal, handler), true);
    }
    const entry = (offset: number) =>
      new Deno.UnsafeFnPointer(Deno.UnsafePointer.create(arena.address + BigInt(offset))!, {
        parameters: ["pointer"],
        result: "i32",
      });
    this.#call = entry(stubs.call);
    this.#resume = entry(stubs.resume);
    this.#trapExit = arena.address + BigInt(stubs.trapExit);
    this.#tailReturn = arena.address + BigInt(stubs.tailReturn);
    this.thread = this.#map(THREAD.SIZE, READ_WRITE);
    this.stack = this.#map(STACK_SIZE, READ_WRITE);
    this.#libc.symbols.mprotect(this.stack.pointer, BigInt(GUARD), 0);
    const reserved = this.#libc.symbols.mmap(null, MEMORY_RESERVED, 0, PRIVATE_ANONYMOUS | NO_RESERVE, -1, 0n)!;
    this.#libc.symbols.mprotect(reserved, BigInt(MEMORY_BYTES), READ_WRITE);
    this.memoryBase = Deno.UnsafePointer.value(reserved);
    this.memory = new Uint8Array(Deno.UnsafePointerView.getArrayBuffer(reserved, MEMORY_BYTES));
    this.thread.view.setBigUint64(THREAD.GUEST_SP, this.stack.address + BigInt(STACK_SIZE - 64), true);
  }

  #map(size: number, protection: number): Region {
    const pointer = this.#libc.symbols.mmap(null, BigInt(size), protection, PRIVATE_ANONYMOUS, -1, 0n)!;
    return new Region(pointer, size);
  }

  /** The address of the installed handler, 0 for none. */
  #signalHandler(signal: number): bigint {
    const old = new Uint8Array(152);
    this.#libc.symbols.sigaction(signal, null, old);
    return new DataView(old.buffer).getBigUint64(0, true);
  }

  /** Installs a handler; returns the one before, 0 for none. */
  #installHandler(signal: number, address: bigint): bigint {
    const action = new Uint8Array(152);
    const view = new DataView(action.buffer);
    view.setBigUint64(0, address, true);
    // SA_SIGINFO | SA_ONSTACK | SA_NODEFER
    view.setInt32(136, 4 | 0x08000000 | 0x40000000, true);
    const old = new Uint8Array(152);
    this.#libc.symbols.sigaction(signal, action, old);
    return new DataView(old.buffer).getBigUint64(0, true);
  }

  /** Places position-independent code that belongs to no image. */
  placeBytes(bytes: Uint8Array): Deno.PointerObject {
    const region = this.#map(4096, READ_WRITE);
    region.bytes.set(bytes);
    this.#libc.symbols.mprotect(region.pointer, 4096n, READ_EXECUTE);
    return region.pointer;
  }

  /** Places an image and a context of its own for it. */
  instantiate(code: MachineCode, context: CodegenContext): NativeInstance {
    const at = this.#used;
    const arena = this.#arena;
    if (at + code.length > ARENA_SIZE) throw new Error("The test's code arena is full");
    const start = Deno.UnsafePointer.create(arena.address + BigInt(at))!;
    const size = (code.length + 4095) & ~4095;
    arena.bytes.set(code.bytes.subarray(0, code.length), at);
    this.#libc.symbols.mprotect(start, BigInt(size), READ_EXECUTE);
    this.#used += size;
    const region = this.#map(Math.max(4096, context.layout.size), READ_WRITE);
    const { view } = region;
    view.setBigUint64(CONTEXT.THREAD, this.thread.address, true);
    view.setBigUint64(CONTEXT.STACK_LIMIT, this.stack.address + BigInt(GUARD + STACK_SLACK), true);
    view.setBigUint64(CONTEXT.TRAP_EXIT, this.#trapExit, true);
    view.setBigUint64(CONTEXT.TAIL_RETURN, this.#tailReturn, true);
    view.setBigUint64(CONTEXT.OVERFLOW, this.thread.address + BigInt(THREAD.OVERFLOW), true);
    view.setBigUint64(context.layout.memoriesOffset + MEMORY.BASE, this.memoryBase, true);
    view.setBigUint64(context.layout.memoriesOffset + MEMORY.LENGTH, BigInt(MEMORY_BYTES), true);
    return new NativeInstance(this, code, context, region, arena.address + BigInt(at));
  }

  /** Enters `code` through `thunk`; runs host functions and builtins when it parks for them. */
  run(
    code: bigint,
    thunk: bigint,
    context: Region,
    record: bigint,
    signature: Signature,
    args: readonly bigint[],
  ): Outcome {
    const { view } = this.thread;
    const pointer = this.thread.pointer;
    view.setBigUint64(THREAD.CALL_CODE, code, true);
    view.setBigUint64(THREAD.CALL_THUNK, thunk, true);
    view.setBigUint64(THREAD.CALL_CONTEXT, context.address, true);
    view.setBigUint64(THREAD.CALL_RECORD, record, true);
    const before = view.getBigUint64(THREAD.GUEST_SP, true);
    this.writeSlots(args);
    let status = this.#call.call(pointer);
    while (status === STATUS.HOST || status === STATUS.BUILTIN) {
      this.#serve(status);
      status = this.#resume.call(pointer);
    }
    if (view.getBigUint64(THREAD.GUEST_SP, true) !== before) {
      throw new Error("The guest stack pointer was not restored");
    }
    if (view.getInt32(THREAD.STATUS, true) !== status) {
      throw new Error("THREAD.STATUS disagrees with the returned status");
    }
    return { status, trap: view.getInt32(THREAD.TRAP_CODE, true), results: this.readSlots(signature.results) };
  }

  #serve(status: number): void {
    const index = this.thread.view.getInt32(THREAD.PARK_INDEX, true);
    if (status === STATUS.HOST) {
      const args = this.readSlots(new Uint8Array(16).fill(TY.I64));
      this.writeSlots(this.hosts[index](args, index));
      return;
    }
    const row = BUILTIN_ROWS[index];
    this.writeSlots(this.builtins[row.name](this.readSlots(Uint8Array.from(row.params)), index));
  }

  writeSlots(values: readonly bigint[]): void {
    values.forEach((value, i) => this.thread.view.setBigUint64(THREAD.SLOTS + 16 * i, BigInt.asUintN(64, value), true));
  }

  readSlots(types: Uint8Array): bigint[] {
    return Array.from(types, (ty, i) => {
      const at = THREAD.SLOTS + 16 * i;
      const narrow = ty === TY.I32 || ty === TY.F32;
      return narrow ? BigInt(this.thread.view.getUint32(at, true)) : this.thread.view.getBigUint64(at, true);
    });
  }
}

/** Mapped bytes at a fixed address. */
class Region {
  readonly address: bigint;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly view: DataView<ArrayBuffer>;

  constructor(readonly pointer: Deno.PointerObject, size: number) {
    this.address = Deno.UnsafePointer.value(pointer);
    const buffer = Deno.UnsafePointerView.getArrayBuffer(pointer, size);
    this.bytes = new Uint8Array(buffer);
    this.view = new DataView(buffer);
  }
}

/** A placed image with its context. */
class NativeInstance {
  constructor(
    readonly process: NativeProcess,
    readonly code: MachineCode,
    readonly codegen: CodegenContext,
    readonly context: Region,
    readonly address: bigint,
  ) {}

  /** Writes a function record at `offset` of the context and returns its address. */
  record(offset: number, code: bigint, context: bigint, typeId: number, host: number): bigint {
    const { view } = this.context;
    view.setBigUint64(offset + RECORD.CODE, code, true);
    view.setBigUint64(offset + RECORD.CONTEXT, context, true);
    view.setUint32(offset + RECORD.TYPE_ID, typeId, true);
    view.setUint32(offset + RECORD.HOST, host, true);
    return this.context.address + BigInt(offset);
  }

  functionAddress(index: number): bigint {
    return this.address + BigInt(this.code.functionStart[index]);
  }

  hostThunk(signature: number): bigint {
    return this.address + BigInt(this.code.hostThunk[signature]);
  }

  /** Calls defined function `index` with bit patterns. */
  call(index: number, args: readonly bigint[]): Outcome {
    const id = this.codegen.functionSignature[index];
    const thunk = this.address + BigInt(this.code.entryThunk[id]);
    return this.process.run(this.functionAddress(index), thunk, this.context, 0n, this.codegen.signatures[id], args);
  }
}
