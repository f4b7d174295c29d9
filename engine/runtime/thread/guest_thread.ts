/**
 * The guest side of one JavaScript realm: the thread state that machine code and JavaScript share, the entries (`call`,
 * `resume`), and the loop that serves the requests of parked guest code. Its parts are the stack (guest_stack.ts), the
 * limits of running code (thread_limits.ts), and what interrupts calls (attention.ts).
 *
 *     JavaScript ── call() ──▶ guest runs ──▶ DONE                        result in SLOTS
 *                                  └──▶ HOST, BUILTIN: parked ─▶ serve in JavaScript ─▶ resume() ──▶ …
 *                                  └──▶ TRAP                              TrapError
 *
 * Invariant: no JavaScript runs while the stack pointer is on the guest stack. A nested call begins below the parked
 * frames: while the host is in control, GUEST_SP is the start of the next call. Parking decreases it and resuming
 * restores it.
 */
import { CONTEXT, STATUS, THREAD } from "../../abi/context_layout.ts";
import { Bug, SuspensionError } from "../../base/errors.ts";
import { REF_TAG } from "../../abi/gc_layout.ts";
import { CodeArena } from "../../host/memory/code_arena.ts";
import type { Host } from "../../host/host.ts";
import type { HostService } from "../boundary/marshal.ts";
import { ignorePromise } from "../boundary/suspension.ts";
import { ContextArena } from "../memory/context_arena.ts";
import { ExceptionRecords } from "../exceptions/exception_records.ts";
import { HandleTable } from "../boundary/handles.ts";
import type { NativeRegion } from "../memory/native_region.ts";
import { UnwindTable } from "../exceptions/unwind_table.ts";
import { Attention } from "./attention.ts";
import { Continuation, Continuations } from "./continuations.ts";
import { GuestStack } from "./guest_stack.ts";
import { cacheMaintenance, enterProcess, type ProcessCode, threadState } from "./process_entry.ts";
import { ThreadLimits } from "./thread_limits.ts";

/** Default stack limit of an instance in bytes; for deterministic code, also the maximum, in abstract units. */
export const STACK_BYTES: number = 1 << 20;
/** The value of THREAD.FUEL without a limit: more than any program can use. */
export const UNLIMITED_FUEL: bigint = 2n ** 62n;
/** The value of THREAD.DEPTH_LEFT without a limit. */
const UNCOUNTED_DEPTH = 0x7fffffff;
/** Bytes below the stack limit that small leaf functions may use without a check. */
const STACK_SLACK_BYTES = 4096;

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

/** The thread of a realm: its parts, and the loop that serves parked code. */
export class GuestThread {
  readonly host: Host;
  readonly code: ProcessCode;
  readonly arena: CodeArena;
  readonly contexts: ContextArena;
  readonly handles: HandleTable = new HandleTable(REF_TAG.HOST);
  /** Exceptions and continuations to which compiled code holds references. */
  readonly exceptions: HandleTable = new HandleTable(REF_TAG.EXCEPTION, (value) => this.#freed(value));
  /** The thread state. */
  readonly state: NativeRegion;
  /** The native unwinding state shared with machine code. */
  readonly unwindTable: UnwindTable;
  readonly records: ExceptionRecords;
  readonly stack: GuestStack;
  readonly continuations: Continuations;
  readonly limits: ThreadLimits;
  readonly attention: Attention;
  /** Addresses of process stubs. A native thread can start in `callStub`, with a thread state of its own. */
  readonly callStub: number;
  readonly trapExit: number;
  readonly tailReturn: number;
  /** Begins the call that the CALL_* fields of the thread state describe. */
  readonly call: () => number;
  readonly resume: () => number;
  /** The length of a slice in milliseconds: how long an asynchronous call runs before the event loop gets a turn. */
  sliceMs = 8;
  /** The number of preemptions since the thread was created. */
  preemptions = 0;
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
    this.arena = new CodeArena(host, cacheMaintenance(host, code.maintenance));
    this.contexts = new ContextArena(host);
    this.state = threadState(host);
    this.unwindTable = new UnwindTable(host, this.state);
    this.records = new ExceptionRecords(host, this.state, this.exceptions);

    this.stack = new GuestStack(host, this.state);
    this.continuations = new Continuations(this.state, this.stack, this.contexts);
    this.state.setWord(THREAD.GUEST_SP, this.stack.high - 64);
    this.state.i64[THREAD.FUEL >> 3] = UNLIMITED_FUEL;
    this.state.setWord(THREAD.STACK_LOW, this.stack.low);
    this.state.setWord(THREAD.STACK_HIGH, this.stack.high);
    this.state.i32[DEPTH_LEFT] = UNCOUNTED_DEPTH;

    const entry = enterProcess(host, code.stubs, this.arena, this.state);
    const { call, resume, callStub, trapExit, tailReturn, watchdog } = entry;
    this.call = call;
    this.resume = resume;
    this.callStub = callStub;
    this.trapExit = trapExit;
    this.tailReturn = tailReturn;
    this.limits = new ThreadLimits(host, this.arena, watchdog);
    this.attention = new Attention(this.limits, this.contexts);
  }

  /** Initializes the header of a VM context, whose functions may use the uppermost `stackBytes` of the stack. */
  initContext(region: NativeRegion, offset: number, instance: number, stackBytes: number, metered: boolean): void {
    region.setWord(offset + CONTEXT.THREAD, this.state.address);
    const bottom = this.stack.low + this.host.system.faultStackBytes;
    const lowest = Math.max(bottom, this.stack.high - stackBytes) + STACK_SLACK_BYTES;
    region.setWord(offset + CONTEXT.STACK_LIMIT, Math.min(lowest, this.stack.high));
    region.setWord(offset + CONTEXT.TRAP_EXIT, this.trapExit);
    region.setWord(offset + CONTEXT.TAIL_RETURN, this.tailReturn);
    region.setWord(offset + CONTEXT.POLL, this.arena.pollPage);
    region.setWord(offset + CONTEXT.OVERFLOW, this.state.address + THREAD.OVERFLOW);
    region.i32[(offset + CONTEXT.INSTANCE) >> 2] = instance;
    region.i32[(offset + CONTEXT.METERED) >> 2] = metered ? 1 : 0;
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

  /**
   * Serves a call that has returned a status other than DONE. Returns when the call is done; throws if it traps or a
   * host function throws. `contextLo`, `contextHi` and `hostServices` are those of the called instance, which parks
   * most often.
   */
  serve(status: number, contextLo: number, contextHi: number, hostServices: readonly HostService[]): void {
    const { i32 } = this.state;
    const { attention, call, continuations, resume } = this;
    this.depth++;
    const outer = continuations.begin();
    let ended = false;
    try {
      while (status !== STATUS.DONE || continuations.leave()) {
        try {
          // A computation has ended: the code that has resumed it continues.
          if (status === STATUS.DONE) status = resume();
          while (status !== STATUS.DONE) {
            if (status === STATUS.HOST && i32[PARK_CONTEXT] === contextLo && i32[PARK_CONTEXT + 1] === contextHi) {
              if (attention.isSet && attention.needsEntry()) attention.look();
              const service = hostServices[i32[PARK_INDEX]];
              const held = service();
              if (held !== undefined) refusePromise(service, held);
            } else if (status === STATUS.POLL) {
              this.#polled();
            } else {
              this.#serveHere(status);
            }
            status = continuations.takeStart() ? call() : resume();
          }
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
      continuations.end(outer);
      if (--this.depth === 0) this.services.atSafepoint(ended);
    }
  }

  /**
   * Handles a poll that faulted: the deadline or the processor time has passed, the slice of an outer call has ended,
   * or work is pending.
   */
  #polled(): void {
    const { limits } = this;
    if (limits.clock() >= limits.interruption || limits.processorTimeIsUp) throw this.trapAtPoll();
    this.continueFromPoll(limits.nextLimit());
  }

  /** Advances pending work at a poll that faulted, and makes polls fault from time `limit` on or when work is due. */
  continueFromPoll(limit: number): void {
    this.limits.workDue = Infinity;
    this.limits.watch(limit);
    this.attention.advance(true);
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

  /** Drops the parked guest code: the next call starts where the innermost call from JavaScript began. */
  abandon(): void {
    this.continuations.drop();
  }

  /** Called with a value to which no reference exists any more. */
  #freed(value: unknown): void {
    if (value instanceof Continuation) this.continuations.drain(value);
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
