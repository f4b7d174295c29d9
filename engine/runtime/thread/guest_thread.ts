/**
 * The guest side of one JavaScript realm: the thread state that machine code and JavaScript share, the guest stack, the ways
 * in (`call`, `resume`), and the loop that serves what parked guest code asks for.
 *
 *     JavaScript ── call() ──▶ guest runs ──▶ DONE                        result in SLOTS
 *                                  └──▶ HOST, BUILTIN: parked ─▶ serve in JavaScript ─▶ resume() ──▶ …
 *                                  └──▶ TRAP                              TrapError
 *
 * Invariant: no JavaScript runs while the stack pointer is on the guest stack. A nested call begins below what is parked:
 * whenever the host is in control, GUEST_SP is where the next fresh call starts. Parking moves it down, resuming back up.
 */
import { CONTEXT, FAULT_WORDS, OLD_HANDLERS, STATUS, THREAD } from "../../abi/context_layout.ts";
import type { ProcessStubs, Target } from "../../codegen/target.ts";
import { Bug, SuspensionError } from "../../errors.ts";
import { REF_TAG } from "../../abi/gc_layout.ts";
import { type CacheMaintenance, CodeArena } from "../../host/code_arena.ts";
import { type Host, PROT } from "../../host/host.ts";
import { OS_CALLS } from "../../host/os_calls.ts";
import { canWatch, Watchdog } from "../../host/watchdog.ts";
import type { HostService } from "../boundary/marshal.ts";
import { ContextArena, type ContextBlock } from "../memory/context_arena.ts";
import { ExceptionRecords } from "../exceptions/exception_records.ts";
import { deferRetirement } from "../memory/memory_range.ts";
import { HandleTable } from "../boundary/handles.ts";
import { NativeRegion } from "../memory/native_region.ts";
import { UnwindTable } from "../exceptions/unwind_table.ts";

/** Bytes of guest stack that an instance may use at most. */
export const STACK_BYTES: number = 1 << 20;
/**
 * Bytes of guest stack that a thread has. Code that counts the depth of calls itself, in units of wasm, may use all of it: frames of machine
 * code are smaller than 16 times what they count for.
 */
const THREAD_STACK_BYTES = 1 << 24;
/** The value of THREAD.FUEL while nothing limits it: more than any program can use. */
export const UNLIMITED_FUEL: bigint = 2n ** 62n;
/** Stack left, in units of wasm, while nothing counts. */
const UNCOUNTED_DEPTH = 0x7fffffff;
/** Inaccessible bytes below the stack: any prologue that moves the stack pointer further probes it. */
export const STACK_GUARD_BYTES: number = 1 << 16;
/** Bytes above the stack limit that small leaf functions may use without a check. */
const STACK_SLACK_BYTES = 4096;

/** Offset behind the thread state of the previous handlers of the fault signals. */
const HANDLERS = THREAD.SIZE;

const PARK_INDEX = THREAD.PARK_INDEX >> 2;
const PARK_CONTEXT = THREAD.PARK_CONTEXT >> 2;
const DEPTH_LEFT = THREAD.DEPTH_LEFT >> 2;

/** What parked guest code needs of the runtime. */
export interface ThreadServices {
  /** Runs builtin `index` for the code of the instance whose VM context is at `context`. May throw a TrapError. */
  serveBuiltin(index: number, context: number): void;
  /** Host function `index` of the instance whose VM context is at `context`. */
  hostService(context: number, index: number): HostService | undefined;
  /** The error of the trap that the thread state describes. */
  trapError(): Error;
  /** The error of a call whose deadline passed while it was not running; with its frames if it is `parked`. */
  interruption(parked: boolean): Error;
  /** Does compiled code catch what the host threw while it is parked? If so, resuming continues at the handler. */
  hasHandler(error: unknown): boolean;
  /**
   * The last call has ended: a safepoint for sweeping, unless results still wait in the slots, which are no roots.
   */
  atSafepoint(resultsWait?: boolean): void;
}

/** The frames of one suspended call, in memory outside the stack: words there are roots of references. */
export interface SuspendedFrames {
  block: ContextBlock;
  /** 0 while the call is running. */
  bytes: number;
}

/** The machine code that a process needs once; a backend makes it, artifacts carry it. */
export interface ProcessCode {
  readonly stubs: ProcessStubs;
  /** Target.cacheMaintenance, where it is needed. */
  readonly maintenance: Uint8Array | undefined;
}

/** The process code of a backend for a host. */
export function processCodeOf(target: Target, os: string): ProcessCode {
  return { stubs: target.processStubs(os), maintenance: target.cacheMaintenance?.() };
}

/** The cache maintenance, callable; undefined where none is needed. */
function cacheMaintenance(host: Host, text: Uint8Array | undefined): CacheMaintenance | undefined {
  if (text === undefined) return undefined;
  const { maintain } = host.nativeLibrary(text, { maintain: { offset: 0, params: ["i64", "i64"], result: "void" } });
  return (first, end) => void maintain(BigInt(first), BigInt(end));
}

export class GuestThread {
  readonly host: Host;
  readonly code: ProcessCode;
  readonly arena: CodeArena;
  readonly contexts: ContextArena;
  readonly handles: HandleTable = new HandleTable(REF_TAG.HOST);
  /** Exceptions that compiled code holds as exnref. */
  readonly exceptions: HandleTable = new HandleTable(REF_TAG.EXCEPTION);
  /** The thread state. */
  readonly state: NativeRegion;
  /** What machine code has of exceptions. */
  readonly unwindTable: UnwindTable;
  readonly records: ExceptionRecords;
  /** Absolute addresses of code in the process stubs. */
  readonly trapExit: number;
  readonly tailReturn: number;
  /** The guest stack, for walking it. */
  readonly stack: NativeRegion;
  readonly stackLow: number;
  readonly stackHigh: number;
  /** Begins the call that the CALL_* fields describe. */
  readonly call: () => number;
  readonly resume: () => number;
  /** Frames of calls that wait for a promise or for their next slice: words there are roots of references. */
  readonly suspended: Set<SuspendedFrames> = new Set();
  /** A call from JavaScript has something to do first: sweep, or ask whether it may be made now. */
  attention = false;
  #sweepDue = false;
  #preempted = 0;
  /** How long the code of an asynchronous call runs before the event loop gets a turn. */
  sliceMs = 8;
  /** How often a slice has ended before its call. */
  preemptions = 0;
  /** When running code is interrupted, on the clock of performance.now(). */
  deadline = Infinity;
  #watched = Infinity;
  #watchdog: Watchdog | undefined;
  /** Nested calls from JavaScript that are under way. */
  depth = 0;
  readonly services: ThreadServices;

  constructor(host: Host, code: ProcessCode, services: ThreadServices) {
    this.host = host;
    this.services = services;
    this.code = code;
    const system = OS_CALLS[host.os];
    this.arena = new CodeArena(host, cacheMaintenance(host, code.maintenance));
    this.contexts = new ContextArena(host);
    const stateBytes = Math.ceil((HANDLERS + OLD_HANDLERS.SIZE) / host.pageSize) * host.pageSize;
    this.state = new NativeRegion(host, host.reserve(stateBytes, PROT.READ | PROT.WRITE), stateBytes);
    this.unwindTable = new UnwindTable(host, this.state);
    this.records = new ExceptionRecords(host, this.state, this.exceptions);

    const stack = host.reserve(STACK_GUARD_BYTES + THREAD_STACK_BYTES, PROT.NONE);
    this.stackLow = stack + STACK_GUARD_BYTES;
    this.stackHigh = this.stackLow + THREAD_STACK_BYTES;
    host.protect(this.stackLow, THREAD_STACK_BYTES, PROT.READ | PROT.WRITE);
    const top = this.stackHigh - 64;
    this.state.setWord(THREAD.GUEST_SP, top);
    this.state.i64[THREAD.FUEL >> 3] = UNLIMITED_FUEL;
    this.state.setWord(THREAD.STACK_LOW, this.stackLow);
    this.state.setWord(THREAD.STACK_HIGH, this.stackHigh);
    this.state.i32[DEPTH_LEFT] = UNCOUNTED_DEPTH;
    this.stack = new NativeRegion(host, this.stackLow, THREAD_STACK_BYTES);

    const { stubs } = code;
    host.ensureSignalStack();
    // Each realm's handler chains to the one before it. Several may be installed at once, so who was before is only known afterwards.
    const places = new Map([
      [system.SIGSEGV, HANDLERS + OLD_HANDLERS.SEGV],
      [system.SIGBUS, HANDLERS + OLD_HANDLERS.BUS],
      [system.SIGFPE, HANDLERS + OLD_HANDLERS.FPE],
    ]);
    for (const [signal, place] of places) this.state.setWord(place, host.signalHandler(signal));
    const base = this.#placeStubs(stubs);
    for (const signal of system.faultSignals) {
      const old = host.installSignalHandler(signal, base + stubs.faultHandler);
      this.state.setWord(places.get(signal)!, old);
    }
    this.trapExit = base + stubs.trapExit;
    this.tailReturn = base + stubs.tailReturn;
    const { call, resume } = host.boundCalls(
      stubs.bytes,
      { call: stubs.call, resume: stubs.resume },
      this.state.address,
    );
    this.call = call;
    this.resume = resume;
  }

  /** Places the process stubs in the arena. */
  #placeStubs(stubs: ProcessStubs): number {
    const base = this.arena.allocate(stubs.bytes.length);
    const bytes = stubs.bytes.slice();
    const view = new DataView(bytes.buffer);
    const put = (offset: number, word: number) => view.setBigUint64(stubs.faultWords + offset, BigInt(word), true);
    put(FAULT_WORDS.START, this.arena.start);
    put(FAULT_WORDS.END, this.arena.end);
    put(FAULT_WORDS.LANDING, base + stubs.faultLanding);
    put(FAULT_WORDS.OLD_HANDLERS, this.state.address + HANDLERS);
    this.arena.publish(base, bytes);
    return base;
  }

  /** Fills the header of a fresh VM context, whose functions may begin in the uppermost `stackBytes` of the stack. */
  initContext(region: NativeRegion, offset: number, instance: number, stackBytes: number, metered: boolean): void {
    region.setWord(offset + CONTEXT.THREAD, this.state.address);
    const lowest = Math.max(this.stackLow, this.stackHigh - stackBytes) + STACK_SLACK_BYTES;
    region.setWord(offset + CONTEXT.STACK_LIMIT, Math.min(lowest, this.stackHigh));
    region.setWord(offset + CONTEXT.TRAP_EXIT, this.trapExit);
    region.setWord(offset + CONTEXT.TAIL_RETURN, this.tailReturn);
    region.setWord(offset + CONTEXT.POLL, this.arena.pollPage);
    region.setWord(offset + CONTEXT.OVERFLOW, this.state.address + THREAD.OVERFLOW);
    region.i32[(offset + CONTEXT.INSTANCE) >> 2] = instance;
    region.i32[(offset + CONTEXT.METERED) >> 2] = metered ? 1 : 0;
  }

  /** Runs `call` with at most `units` of stack for code that counts the depth of calls. */
  withDepth<T>(units: number, call: () => T): T {
    const { i32 } = this.state;
    const before = i32[DEPTH_LEFT]!;
    i32[DEPTH_LEFT] = Math.min(before, units);
    try {
      return call();
    } finally {
      i32[DEPTH_LEFT] = before;
    }
  }

  /** References have piled up: sweep at the next safepoint. */
  get sweepDue(): boolean {
    return this.#sweepDue;
  }

  set sweepDue(due: boolean) {
    this.#sweepDue = due;
    this.attention = due || this.#preempted > 0;
  }

  /** Calls that are between two slices. */
  get preempted(): number {
    return this.#preempted;
  }

  set preempted(count: number) {
    if (this.#preempted === 0 && count > 0) {
      deferRetirement(1);
      this.contexts.deferReleases();
    } else if (this.#preempted > 0 && count === 0) {
      deferRetirement(-1);
      this.contexts.releaseDeferred();
    }
    this.#preempted = count;
    this.attention = count > 0 || this.#sweepDue;
  }

  /** Are deadlines supported here? */
  get canWatch(): boolean {
    return canWatch(this.host);
  }

  /**
   * When polls begin to fault, on the clock of performance.now(); Infinity for never. It is never later than the deadline; a poll that
   * faults earlier than anybody wanted it to only sets it anew.
   */
  get watched(): number {
    return this.#watched;
  }

  /** Lets polls fault from `at` on. Throws an Error where deadlines are not supported. */
  watch(at: number): void {
    if (this.#watched !== Infinity) {
      this.#watched = Infinity;
      this.#watchdog!.disarm();
    }
    if (at === Infinity) return;
    const watchdog = this.#watchdog ??= new Watchdog(this.host, this.arena);
    this.#watched = at;
    watchdog.arm(at - performance.now());
  }

  /** Is a word anywhere in guest frames? */
  holdsWord(word: number): boolean {
    const low = word >>> 0;
    const high = (word / 0x1_0000_0000) >>> 0;
    for (const { region: { u32 }, offset, bytes } of this.guestFrames()) {
      for (let at = offset >> 2, end = (offset + bytes) >> 2; at < end; at += 2) {
        if (u32[at] === low && u32[at + 1] === high) return true;
      }
    }
    return false;
  }

  /** Guest frames wherever they are: what is parked on the stack, and what suspended calls left. For finding references in them. */
  *guestFrames(): Generator<{ region: NativeRegion; offset: number; bytes: number }> {
    const sp = this.state.word(THREAD.GUEST_SP);
    yield { region: this.stack, offset: sp - this.stackLow, bytes: this.stackHigh - sp };
    for (const { block, bytes } of this.suspended) yield { region: block.region, offset: block.offset, bytes };
  }

  /**
   * Serves a call that did not end at once; returns when it is done, throws when it traps or a host function throws.
   * `context` (its two halves) and `hostServices` are those of the instance that was called: the usual one to park.
   */
  serve(status: number, contextLo: number, contextHi: number, hostServices: readonly HostService[]): void {
    const { i32 } = this.state;
    const { resume } = this;
    this.depth++;
    let ended = false;
    try {
      while (status !== STATUS.DONE) {
        try {
          do {
            if (status === STATUS.HOST && i32[PARK_CONTEXT] === contextLo && i32[PARK_CONTEXT + 1] === contextHi) {
              const service = hostServices[i32[PARK_INDEX]!]!;
              const promise = service();
              if (promise !== undefined) refusePromise(service, promise);
            } else if (status === STATUS.POLL) {
              this.#polled();
            } else {
              this.#serveHere(status);
            }
            status = resume();
          } while (status !== STATUS.DONE);
        } catch (error) {
          if (status === STATUS.TRAP) throw error;
          // What interrupts the guest is not for it to catch.
          if (status === STATUS.POLL || !this.services.hasHandler(error)) {
            this.abandon();
            throw error;
          }
          status = resume();
        }
      }
      ended = true;
    } finally {
      if (--this.depth === 0) this.services.atSafepoint(ended);
    }
  }

  /** A poll has found its page closed: the deadline, or only the end of a slice of a call further out. */
  #polled(): void {
    if (performance.now() >= this.deadline) throw this.services.trapError();
    this.watch(this.deadline);
  }

  #serveHere(status: number): void {
    const service = this.serveOther(status);
    if (service === undefined) return;
    const promise = service();
    if (promise !== undefined) refusePromise(service, promise);
  }

  /** Serves what is not a host function; returns the service of one. Throws the error of a trap. */
  serveOther(status: number): HostService | undefined {
    const index = this.state.i32[PARK_INDEX]!;
    const context = this.state.word(THREAD.PARK_CONTEXT);
    if (status === STATUS.TRAP) throw this.services.trapError();
    if (status === STATUS.BUILTIN) {
      this.services.serveBuiltin(index, context);
      return undefined;
    }
    if (status !== STATUS.HOST) throw new Bug(`Unknown status ${status}`);
    const service = this.services.hostService(context, index);
    if (service === undefined) throw new Bug(`Host function ${index} does not exist`);
    return service;
  }

  /** Drops the guest code that is parked: the next call starts where its activation began (the parked frame's first word). */
  abandon(): void {
    const parked = this.state.word(THREAD.GUEST_SP);
    this.state.setWord(THREAD.GUEST_SP, this.stack.word(parked - this.stackLow));
  }
}

/** A synchronous call has met a promise: the value, where one can be, else an error. */
function refusePromise(service: HostService, promise: PromiseLike<unknown>): void {
  if (service.takesPromise) return service.deliver(promise);
  promise.then(undefined, () => {}); // nobody is left to hear of its rejection
  throw new SuspensionError(
    `The import ${service.label} returned a promise: call the instance with callAsync to wait for it`,
  );
}
