/**
 * The guest side of one JavaScript realm: the thread state that machine code and JavaScript share, the guest stack, the
 * entries (`call`, `resume`), and the loop that serves the requests of parked guest code.
 *
 *     JavaScript ── call() ──▶ guest runs ──▶ DONE                        result in SLOTS
 *                                  └──▶ HOST, BUILTIN: parked ─▶ serve in JavaScript ─▶ resume() ──▶ …
 *                                  └──▶ TRAP                              TrapError
 *
 * Invariant: no JavaScript runs while the stack pointer is on the guest stack. A nested call begins below the parked
 * frames: while the host is in control, GUEST_SP is the start of the next call. Parking decreases it and resuming
 * restores it.
 */
import { CONTEXT, FAULT_WORDS, OLD_HANDLERS, STATUS, THREAD } from "../../abi/context_layout.ts";
import type { ProcessStubs, Target } from "../../codegen/target.ts";
import { Bug, SuspensionError } from "../../base/errors.ts";
import { REF_TAG } from "../../abi/gc_layout.ts";
import { type CacheMaintenance, CodeArena } from "../../host/memory/code_arena.ts";
import { type Host, PROT } from "../../host/host.ts";
import { now } from "../../host/clocks.ts";
import { threadClock } from "../../host/thread_clock.ts";
import { noteProbe, probeCode } from "../../host/cpu.ts";
import { WATCH, Watchdog, type WatchdogCalls, watchdogCode } from "../../host/code/watchdog.ts";
import type { HostService } from "../boundary/marshal.ts";
import { ignorePromise } from "../boundary/suspension.ts";
import { ContextArena, type ContextBlock } from "../memory/context_arena.ts";
import { ExceptionRecords } from "../exceptions/exception_records.ts";
import { deferRetirement } from "../memory/memory_range.ts";
import { HandleTable } from "../boundary/handles.ts";
import { NativeRegion } from "../memory/native_region.ts";
import { UnwindTable } from "../exceptions/unwind_table.ts";

/** Default stack limit of an instance in bytes; for deterministic code, also the maximum, in abstract units. */
export const STACK_BYTES: number = 1 << 20;
/**
 * Size of the guest stack of a thread in bytes. Code that counts the call depth in abstract units may use all of it:
 * its machine frames are smaller than 16 bytes per counted unit.
 */
const THREAD_STACK_BYTES = 1 << 24;
/** Size in bytes of the uppermost part of the stack, in which most calls park. */
const STACK_TOP_BYTES = 1 << 16;
/** The value of THREAD.FUEL without a limit: more than any program can use. */
export const UNLIMITED_FUEL: bigint = 2n ** 62n;
/** The value of THREAD.DEPTH_LEFT without a limit. */
const UNCOUNTED_DEPTH = 0x7fffffff;
/** Size of the inaccessible guard range below the stack in bytes; prologues with larger frames probe it. */
export const STACK_GUARD_BYTES: number = 1 << 16;
/** Bytes below the stack limit that small leaf functions may use without a check. */
const STACK_SLACK_BYTES = 4096;

/** Offset of the previous handlers of the fault signals, after the thread state. */
const HANDLERS = THREAD.SIZE;
/** Offset of the watchdog's state, after those. */
const WATCHDOG = Math.ceil((HANDLERS + OLD_HANDLERS.SIZE) / 16) * 16;

const PARK_INDEX = THREAD.PARK_INDEX >> 2;
const PARK_CONTEXT = THREAD.PARK_CONTEXT >> 2;
const DEPTH_LEFT = THREAD.DEPTH_LEFT >> 2;

/** The services of the runtime for parked guest code. */
interface ThreadServices {
  /** Runs builtin `index` for the instance whose VM context is at `context`. May throw a TrapError. */
  serveBuiltin(index: number, context: number): void;
  /** The service of host function `index` of the instance whose VM context is at `context`. */
  hostService(context: number, index: number): HostService | undefined;
  /** The error of the trap that the thread state describes. */
  trapError(): Error;
  /** The error of a call whose deadline passed while it was not running; with its frames if it is `parked`. */
  interruption(parked: boolean): Error;
  /**
   * Whether compiled code handles an error that the host threw while the guest was parked; resuming then continues at
   * the handler.
   */
  hasHandler(error: unknown): boolean;
  /**
   * Called at a safepoint, when the outermost call has ended. No sweep may run if results are still in the slots, which
   * are not roots (`resultsWait`).
   */
  atSafepoint(resultsWait?: boolean): void;
}

/** Work on this thread that requires JavaScript to be in control, such as replacing code. */
export interface PendingWork {
  /**
   * Makes progress without blocking. `atPoll`: the innermost frame has parked at the poll that THREAD.TRAP_PC names.
   * Returns the time of the next call, on the clock of performance.now(); undefined if the work is finished.
   */
  advance(now: number, atPoll?: boolean): number | undefined;
  /** Whether the work must advance at every call from JavaScript. */
  readonly eager?: boolean;
}

/**
 * Number of calls between two advances of pending work, each of which reads the clock. It is doubled while the calls
 * take less than SHORT_LOOK_MS together, up to MAX_CALLS_PER_LOOK; polls show when a call takes longer than before.
 */
const CALLS_PER_LOOK = 32;
const MAX_CALLS_PER_LOOK = 512;
const SHORT_LOOK_MS = 0.05;

/** The shortest delay before processor time is read again, in milliseconds. */
const MIN_WATCH_MS = 0.1;

/** The saved frames of one suspended call, in memory outside the stack; their words are conservative roots. */
export interface SuspendedFrames {
  block: ContextBlock;
  /** Size of the saved frames in bytes; 0 while the call is running. */
  bytes: number;
}

/** The machine code that each process needs once; made by a backend and stored in artifacts. */
export interface ProcessCode {
  readonly stubs: ProcessStubs;
  /** Code of Target.cacheMaintenance, if the target needs it. */
  readonly maintenance: Uint8Array | undefined;
}

/** The process code of a target for an operating system. */
export function processCodeOf(target: Target, os: string): ProcessCode {
  return { stubs: target.processStubs(os), maintenance: target.cacheMaintenance?.() };
}

/** The host's cache maintenance, or that of the target as a function; undefined if neither exists. */
function cacheMaintenance(host: Host, text: Uint8Array | undefined): CacheMaintenance | undefined {
  if (host.invalidateInstructions !== undefined) return host.invalidateInstructions;
  if (text === undefined) return undefined;
  const { maintain } = host.nativeLibrary(text, { maintain: { offset: 0, params: ["i64", "i64"], result: "void" } });
  return (first, end) => void maintain(BigInt(first), BigInt(end));
}

/** Pieces of code one behind the other, with the start of each after the first. */
function joinCode([first, ...rest]: readonly [Uint8Array, ...(Uint8Array | undefined)[]]): {
  text: Uint8Array;
  starts: number[];
} {
  let end = first.length;
  const starts = rest.map((piece) => {
    const start = Math.ceil(end / 16) * 16;
    if (piece !== undefined) end = start + piece.length;
    return start;
  });
  const text = new Uint8Array(end);
  text.set(first);
  rest.forEach((piece, k) => piece && text.set(piece, starts[k]));
  return { text, starts };
}

export class GuestThread {
  readonly host: Host;
  readonly code: ProcessCode;
  readonly arena: CodeArena;
  readonly contexts: ContextArena;
  readonly handles: HandleTable = new HandleTable(REF_TAG.HOST);
  /** Exceptions to which compiled code holds an exnref. */
  readonly exceptions: HandleTable = new HandleTable(REF_TAG.EXCEPTION);
  /** The thread state. */
  readonly state: NativeRegion;
  /** The native unwinding state shared with machine code. */
  readonly unwindTable: UnwindTable;
  readonly records: ExceptionRecords;
  /** Addresses of process stubs. */
  readonly trapExit: number;
  readonly tailReturn: number;
  readonly stackLow: number;
  readonly stackHigh: number;
  /** Begins the call that the CALL_* fields of the thread state describe. */
  readonly call: () => number;
  readonly resume: () => number;
  /** Frames of suspended and preempted calls; their words are conservative roots. */
  readonly suspended: Set<SuspendedFrames> = new Set();
  /**
   * Set if a sweep is due, a call is preempted, or work is pending. A call from JavaScript must then ask `needsEntry`.
   */
  attention = false;
  readonly #stackTop: NativeRegion;
  #stack: NativeRegion | undefined;
  #sweepDue = false;
  #preempted = 0;
  readonly #pending = new Set<PendingWork>();
  #callsToLook = 1;
  #callsPerLook = CALLS_PER_LOOK;
  /** The time of the last advance of pending work. */
  #advancedAt = -Infinity;
  /** The number of calls that need not `enter`, because pending work alone has the attention and advanced lately. */
  #freeCalls = 0;
  #eager = false;
  /** The length of a slice in milliseconds: how long an asynchronous call runs before the event loop gets a turn. */
  sliceMs = 8;
  /** The number of preemptions since the thread was created. */
  preemptions = 0;
  /** The clock of limits and of pending work, which tests replace. */
  clock: () => number = now;
  /** The time at which running code is interrupted, on the clock of performance.now(). */
  deadline = Infinity;
  /** The processor time, on the clock of `processorNow`, at which running code is interrupted. */
  processorDeadline = Infinity;
  /**
   * The deadline of the work that the running call belongs to, besides those of calls: asked at each call from
   * JavaScript while there is bounded work.
   */
  workDeadline = Infinity;
  #workLimit: (() => number) | undefined;
  #watched = Infinity;
  /** The time at which pending work is to advance. */
  #workDue = Infinity;
  readonly #watchdogCalls: WatchdogCalls | undefined;
  #watchdog: Watchdog | undefined;
  /** Whether starting the watchdog for pending work failed. */
  #isUnwatched = false;
  #processorClock: (() => number) | undefined;
  /** The last trap at a poll, and the fuel that was left there: the place of the interruption, for recordings. */
  pollTrap: { readonly error: Error; readonly fuel: bigint } | undefined;
  /** The number of nested calls from JavaScript in progress. */
  depth = 0;
  /** The `depth` of the innermost asynchronous call: only there can a suspending import suspend its caller. */
  suspendableDepth = -1;
  readonly services: ThreadServices;

  constructor(host: Host, code: ProcessCode, services: ThreadServices) {
    this.host = host;
    this.services = services;
    this.code = code;
    const { system } = host;
    this.arena = new CodeArena(host, cacheMaintenance(host, code.maintenance));
    this.contexts = new ContextArena(host);
    const stateBytes = Math.ceil((WATCHDOG + WATCH.SIZE) / host.pageSize) * host.pageSize;
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
    this.#stackTop = new NativeRegion(host, this.stackHigh - STACK_TOP_BYTES, STACK_TOP_BYTES);

    const { stubs } = code;
    host.ensureSignalStack();
    // Each realm's handler chains to the previous one. Several realms may install handlers at once, so the previous one
    // is known only after the installation.
    const places = new Map([
      [system.SIGSEGV, HANDLERS + OLD_HANDLERS.SEGV],
      [system.SIGBUS, HANDLERS + OLD_HANDLERS.BUS],
      [system.SIGFPE, HANDLERS + OLD_HANDLERS.FPE],
    ]);
    for (const [signal, place] of places) this.state.setWord(place, host.signalHandler(signal));
    const base = this.#placeStubs(stubs);
    this.trapExit = base + stubs.trapExit;
    this.tailReturn = base + stubs.tailReturn;
    const { call, resume, watchdog } = this.#openLibrary(stubs);
    this.call = call;
    this.resume = resume;
    this.#watchdogCalls = watchdog;
    this.#installHandlers(base + stubs.faultHandler, places);
  }

  /**
   * Opens one library for everything that JavaScript calls: the process stubs, the watchdog's routines, and the probe
   * of the processor, which runs at once. A library of their own takes twice as long as the probe and the start of the
   * watchdog.
   */
  #openLibrary({ bytes, call, resume }: ProcessStubs): Pick<GuestThread, "call" | "resume"> & {
    watchdog: WatchdogCalls | undefined;
  } {
    const { host, state: { address, u32 } } = this;
    const probe = probeCode(host, THREAD.SLOTS);
    const watchdog = watchdogCode(host);
    const { text, starts: [probeStart, watchdogStart] } = joinCode([bytes, probe, watchdog?.bytes]);
    const routines = watchdog && { arm: watchdogStart + watchdog.arm, disarm: watchdogStart + watchdog.disarm };
    const state = address + WATCHDOG;
    const calls = host.boundCalls<string>(
      text,
      { call, resume, ...routines, ...(probe && { probe: probeStart }) },
      { call: address, resume: address, arm: state, disarm: state, probe: address },
    );
    if (probe !== undefined) {
      calls.probe();
      const results = u32.subarray(THREAD.SLOTS >> 2, (THREAD.SLOTS + THREAD.SLOT_SIZE) >> 2);
      noteProbe(host, results);
      results.fill(0); // test scripts print whole slots
    }
    const words = u32.subarray(WATCHDOG >> 2, (WATCHDOG + WATCH.SIZE) >> 2);
    return {
      call: calls.call,
      resume: calls.resume,
      watchdog: routines && { address: state, state: words, arm: calls.arm, disarm: calls.disarm },
    };
  }

  /** Installs the fault handler and stores the previous ones at `places`; if that fails, restores them. */
  #installHandlers(handler: number, places: ReadonlyMap<number, number>): void {
    const { host } = this;
    const installed = new Map<number, number>();
    try {
      for (const signal of host.system.faultSignals) {
        const old = host.installSignalHandler(signal, handler);
        installed.set(signal, old);
        this.state.setWord(places.get(signal)!, old);
      }
    } catch (error) {
      for (const [signal, old] of installed) host.installSignalHandler(signal, old);
      throw error;
    }
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

  /** Initializes the header of a VM context, whose functions may use the uppermost `stackBytes` of the stack. */
  initContext(region: NativeRegion, offset: number, instance: number, stackBytes: number, metered: boolean): void {
    region.setWord(offset + CONTEXT.THREAD, this.state.address);
    const bottom = this.stackLow + this.host.system.faultStackBytes;
    const lowest = Math.max(bottom, this.stackHigh - stackBytes) + STACK_SLACK_BYTES;
    region.setWord(offset + CONTEXT.STACK_LIMIT, Math.min(lowest, this.stackHigh));
    region.setWord(offset + CONTEXT.TRAP_EXIT, this.trapExit);
    region.setWord(offset + CONTEXT.TAIL_RETURN, this.tailReturn);
    region.setWord(offset + CONTEXT.POLL, this.arena.pollPage);
    region.setWord(offset + CONTEXT.OVERFLOW, this.state.address + THREAD.OVERFLOW);
    region.i32[(offset + CONTEXT.INSTANCE) >> 2] = instance;
    region.i32[(offset + CONTEXT.METERED) >> 2] = metered ? 1 : 0;
  }

  /**
   * The guest stack. The view is created on first use, because the JavaScript engine counts it as external memory and
   * would collect garbage more often.
   */
  get stack(): NativeRegion {
    return this.#stack ??= new NativeRegion(this.host, this.stackLow, THREAD_STACK_BYTES);
  }

  /** The 64-bit word at `address` in the guest stack. */
  stackWord(address: number): number {
    const { region, offset } = this.stackRange(address);
    return region.word(offset);
  }

  /** The part of the guest stack from `address` on: a region, and the address's offset in it. */
  stackRange(address: number): { region: NativeRegion; offset: number } {
    const region = address >= this.#stackTop.address ? this.#stackTop : this.stack;
    return { region, offset: address - region.address };
  }

  /** Runs `call` with a stack budget of at most `units` for code that counts the call depth. */
  withDepth<T>(units: number, call: () => T): T {
    const { i32 } = this.state;
    const before = i32[DEPTH_LEFT];
    i32[DEPTH_LEFT] = Math.min(before, units);
    try {
      return call();
    } finally {
      i32[DEPTH_LEFT] = before;
    }
  }

  /** Set if many references have accumulated: the next safepoint sweeps. */
  get sweepDue(): boolean {
    return this.#sweepDue;
  }

  set sweepDue(due: boolean) {
    this.#sweepDue = due;
    this.#updateAttention();
  }

  /** The number of preempted calls. */
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
    this.#updateAttention();
  }

  #updateAttention(): void {
    this.attention = this.#needsEveryCall || this.#pending.size > 0;
    if (this.#needsEveryCall) this.#freeCalls = 0;
  }

  /** Whether every call must `enter`, not only one of CALLS_PER_LOOK. */
  get #needsEveryCall(): boolean {
    return this.#sweepDue || this.#preempted > 0 || this.#eager || this.#workLimit !== undefined;
  }

  /**
   * While set, each call from JavaScript asks it for the deadline of the work that the call belongs to; it throws if
   * that work may run no more code.
   */
  set workLimit(limit: (() => number) | undefined) {
    this.#workLimit = limit;
    // Otherwise, guest code below a host function that begins or ends other work keeps its deadline.
    if (limit === undefined) this.workDeadline = Infinity;
    this.#updateAttention();
  }

  /** The deadline of the work that JavaScript does now; throws if it may run no more code. */
  askWork(): number {
    return this.#workLimit?.() ?? Infinity;
  }

  /** Bounds the call that begins by the deadline of its work. */
  enterWork(): void {
    if (this.#workLimit === undefined || this.depth > 0) return;
    this.workDeadline = this.#workLimit();
    if (this.workDeadline < this.#watched) this.watch(this.nextLimit());
  }

  /** The time at which running code is interrupted: the deadline of the call or of its work. */
  get interruption(): number {
    return Math.min(this.deadline, this.workDeadline);
  }

  /** Counts a call while `attention` is set; returns true if it must `enter`. */
  needsEntry(): boolean {
    if (this.#freeCalls === 0) return true;
    this.#freeCalls--;
    return false;
  }

  /** Registers `work`, which advances while JavaScript is in control of this thread until it is finished. */
  addWork(work: PendingWork): void {
    this.#pending.add(work);
    this.#eager ||= work.eager === true;
    this.#callsToLook = 1; // the next call may run for a long time, so it must arm its polls
    this.#callsPerLook = CALLS_PER_LOOK;
    this.#freeCalls = 0;
    this.#advancedAt = -Infinity;
    this.#updateAttention();
  }

  /** Whether there is pending work. */
  get hasWork(): boolean {
    return this.#pending.size > 0;
  }

  /**
   * Called for calls in both directions that `needsEntry`: advances pending work once per CALLS_PER_LOOK calls or more,
   * or at each if some is eager.
   */
  lookForWork(): void {
    if (!this.#needsEveryCall) this.#freeCalls = this.#callsPerLook - 1;
    else if (--this.#callsToLook > 0 && !this.#eager) return;
    this.#callsToLook = CALLS_PER_LOOK;
    this.advanceWork();
  }

  /** Advances all pending work, and arms the polls of running code for the time of its next call. */
  advanceWork(atPoll = false): void {
    const time = this.clock();
    const isShort = time - this.#advancedAt < SHORT_LOOK_MS && !this.#isUnwatched;
    this.#callsPerLook = isShort ? Math.min(2 * this.#callsPerLook, MAX_CALLS_PER_LOOK) : CALLS_PER_LOOK;
    this.#advancedAt = time;
    let next = Infinity;
    for (const work of this.#pending) {
      const wanted = work.advance(time, atPoll);
      if (wanted === undefined) this.#pending.delete(work);
      else next = Math.min(next, wanted);
    }
    if (this.#pending.size === 0) this.#eager = false;
    this.#updateAttention();
    this.#workDue = this.#isUnwatched ? Infinity : next;
    if (this.#workDue < this.#watched) this.#watchWork();
  }

  /**
   * Makes polls fault when work is due. Where the system cannot start a thread for the watchdog, work advances only at
   * calls.
   */
  #watchWork(): void {
    try {
      this.watch(this.#workDue);
    } catch {
      this.#isUnwatched = true;
      this.#workDue = Infinity;
    }
  }

  /**
   * The time from which polls fault, on the clock of performance.now(); Infinity for never. It is never later than the
   * deadline or the time at which pending work is to advance. A poll that faults too early only sets it again.
   */
  get watched(): number {
    return this.#watched;
  }

  /** The processor time of this thread in milliseconds. */
  processorNow(): number {
    this.#processorClock ??= threadClock(this.host);
    return this.#processorClock();
  }

  /** Whether the running call has used up its processor time. */
  get processorTimeIsUp(): boolean {
    return this.processorDeadline !== Infinity && this.processorNow() >= this.processorDeadline;
  }

  /**
   * The earliest time at which a limit of the running call can be reached, on the clock of performance.now(). Processor
   * time passes at most as fast as that clock, so a poll at this time is never too late; if it is too early, it is
   * repeated.
   */
  nextLimit(): number {
    if (this.processorDeadline === Infinity) return this.interruption;
    const left = Math.max(this.processorDeadline - this.processorNow(), MIN_WATCH_MS);
    return Math.min(this.interruption, this.clock() + left);
  }

  /**
   * Makes polls fault from time `at` on, or from the time at which pending work is to advance, if that is earlier.
   * Throws an Error if deadlines are not supported.
   */
  watch(at: number): void {
    if (this.#watched !== Infinity) {
      this.#watched = Infinity;
      this.#watchdog!.disarm();
    }
    const first = Math.min(at, this.#workDue);
    if (first === Infinity) return;
    const watchdog = this.#watchdog ??= Watchdog.start(this.host, this.arena, this.#watchdogCalls);
    this.#watched = first;
    watchdog.arm(first - this.clock());
  }

  /** Whether `word` occurs in the guest frames. */
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

  /** Whether a word in the guest frames may be an address in [start, start + bytes). */
  holdsAddressIn(start: number, bytes: number): boolean {
    for (const { region: { u32 }, offset, bytes: length } of this.guestFrames()) {
      // Return addresses of code that has run for long are most likely in the oldest frames.
      for (let at = ((offset + length) >> 2) - 2; at >= offset >> 2; at -= 2) {
        const distance = u32[at] + u32[at + 1] * 0x1_0000_0000 - start;
        if (distance >= 0 && distance < bytes) return true;
      }
    }
    return false;
  }

  /**
   * All guest frames, for conservative scanning: the parked frames on the stack and the saved frames of suspended
   * calls.
   */
  *guestFrames(): Generator<{ region: NativeRegion; offset: number; bytes: number }> {
    const sp = this.state.word(THREAD.GUEST_SP);
    yield { ...this.stackRange(sp), bytes: this.stackHigh - sp };
    for (const { block, bytes } of this.suspended) yield { region: block.region, offset: block.offset, bytes };
  }

  /**
   * Serves a call that has returned a status other than DONE. Returns when the call is done; throws if it traps or a
   * host function throws. `contextLo`, `contextHi` and `hostServices` are those of the called instance, which parks
   * most often.
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
              if (this.attention && this.needsEntry() && this.hasWork) this.lookForWork();
              const service = hostServices[i32[PARK_INDEX]];
              const held = service();
              if (held !== undefined) refusePromise(service, held);
            } else if (status === STATUS.POLL) {
              this.#polled();
            } else {
              this.#serveHere(status);
            }
            status = resume();
          } while (status !== STATUS.DONE);
        } catch (error) {
          if (status === STATUS.TRAP) throw error;
          // Guest code cannot catch an interruption.
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

  /**
   * Handles a poll that faulted: the deadline or the processor time has passed, the slice of an outer call has ended,
   * or work is pending.
   */
  #polled(): void {
    if (this.clock() >= this.interruption || this.processorTimeIsUp) throw this.trapAtPoll();
    this.continueFromPoll(this.nextLimit());
  }

  /** Advances pending work at a poll that faulted, and makes polls fault from time `limit` on or when work is due. */
  continueFromPoll(limit: number): void {
    this.#workDue = Infinity;
    this.watch(limit);
    if (this.hasWork) this.advanceWork(true);
  }

  /** The trap of a limit that has passed at the poll where the code has parked. */
  trapAtPoll(): Error {
    const error = this.services.trapError();
    this.pollTrap = { error, fuel: this.state.i64[THREAD.FUEL >> 3] };
    return error;
  }

  #serveHere(status: number): void {
    const service = this.serveOther(status);
    if (service === undefined) return;
    const held = service();
    if (held !== undefined) refusePromise(service, held);
  }

  /** Serves a status of any instance. Returns the service if it is a host call; throws the error of a trap. */
  serveOther(status: number): HostService | undefined {
    const index = this.state.i32[PARK_INDEX];
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

  /** Drops the parked guest code: the next call starts where its activation began (first word of the parked frame). */
  abandon(): void {
    const parked = this.state.word(THREAD.GUEST_SP);
    this.state.setWord(THREAD.GUEST_SP, this.stackWord(parked));
  }
}

/** Handles a promise in a synchronous call: passes it as the value if the result type permits, otherwise throws. */
function refusePromise(service: HostService, held: unknown): void {
  if (service.takesPromise) return service.deliver(held);
  ignorePromise(held);
  throw unexpectedPromise(service.label);
}

/** The error of a synchronous call whose import `label` returned a promise. */
export function unexpectedPromise(label: string): SuspensionError {
  return new SuspensionError(
    `The import ${label} returned a promise: call the instance with callAsync to wait for it`,
  );
}
