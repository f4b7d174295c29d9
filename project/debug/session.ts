/**
 * One run of a program under the debugger. In: a program, an instance of its instrumented module, and commands. Out:
 * calls of the listener when the program stops; the state of a stopped program.
 *
 * A step back runs the program again in a new instance, up to an earlier moment; `left` counts epochs (instrument.ts).
 *
 * Invariant: the program runs only between a command that resumes it and the next call of `stopped`; in between, its
 * frames and variables do not change except by the methods here.
 */
import type { Context, ExternGlobal, ExternTable, Instance, Memory } from "@waft/engine";
import { NewEngine, TrapError } from "@waft/engine";
import { callCanSuspend } from "@waft/engine/internal/runtime/host_limits";
import type { DebuggedTasks } from "@waft/component/internal/component";
import type { ActivationClock, Times } from "./activation_clock.ts";
import { type DebuggedFunction, ELEMENT, type LocalSlot, RECORD, TIMES } from "./instrument.ts";
import type { Program } from "./program.ts";
import { readNumber, type Value, writeNumber } from "./values.ts";

/** The reason for which a program stopped. */
export type StopReason = "entry" | "breakpoint" | "step" | "pause" | "exception";

/** A stop. */
export interface Stop {
  readonly reason: StopReason;
  /** The message of a trap, or the reason why a condition could not be evaluated. */
  readonly text?: string;
}

/** The extent of a step. */
export type Step = "into" | "over" | "out";

/** An activation of a function; frames are listed from the innermost. Times are those of parts, elsewhere 0. */
export interface Frame extends Times {
  readonly func: DebuggedFunction;
  readonly location: number;
  /** The address of its record, which identifies it while the program is stopped. */
  readonly record: number;
}

/** A breakpoint at a location. */
export interface Breakpoint {
  readonly location: number;
  /** Decides whether the program stops, or returns the reason why that is unknown. */
  readonly holds?: (frame: Frame) => boolean | string;
  /** Decides the same for a stop on the way back, without effects. */
  readonly matches?: (frame: Frame) => boolean;
}

/** The instances in which a program runs. */
interface Runs {
  /** An instance of the instrumented module. */
  readonly instance: Instance;
  /**
   * Makes another instance, in which the calls of the host repeat their results and effects; without it, the program
   * cannot go back.
   */
  readonly again?: () => Instance;
  /** True while the log of host calls is complete, so that {@linkcode again} works. */
  readonly canRepeat: () => boolean;
  /** The tasks of a component with asynchronous functions. */
  readonly tasks?: DebuggedTasks | undefined;
  /** The clock of the program, if the module is a part of one. */
  readonly clock?: ActivationClock;
}

/** The records of a thread that another one has replaced. */
interface SavedRecords {
  readonly current: unknown;
  readonly bytes: Uint8Array;
}

/** Receives the stops of a session. */
interface Listener {
  stopped(stop: Stop): void;
}

/**
 * The target of a step back: the previous instruction, the previous line of the function or its callers, a breakpoint.
 */
export type StepBack = "instruction" | "line" | "breakpoint";

/** A call of an export, in the order of a run. */
interface PlannedCall {
  readonly name: string;
  readonly args: readonly unknown[];
}

interface Stepping {
  readonly step: Step;
  /** Step by instructions rather than by lines. */
  readonly byInstruction: boolean;
  /** The thread that steps. */
  readonly thread: object;
  readonly record: number;
  /** Undefined if the step began in another core instance. */
  readonly func: DebuggedFunction | undefined;
  readonly line: string;
}

/** A moment of a run: a location in an epoch (instrument.ts), from 1 on; −1 is the first location of the epoch. */
interface Moment {
  readonly epoch: bigint;
  readonly location: number;
}

/** A repeated run up to an earlier moment, by which the program goes back. */
interface ReverseRun {
  /** The reason of the stop at its end. */
  readonly reason: StopReason;
  readonly end: Moment;
  /** Flags of the locations to examine for the last stop before the end; undefined if the end is the target. */
  readonly candidates: Uint8Array | undefined;
  readonly accepts: (location: number) => boolean;
  /** The first epoch whose locations are examined. */
  readonly from: bigint;
  /** The last accepted moment. */
  found: Moment | undefined;
  /** Whether the run is before the examined epochs, within them, or in the epoch of its end. */
  stage: "before" | "within" | "last";
}

/** The value of `left` at the beginning of a run that waits for no epoch. */
const FAR = 1n << 62n;

/** Turns a host function into a function reference. */
const RELAY = `(module (import "" "stop" (func $stop (param i32))) (export "stop" (func $stop)))`;

/** A run. */
export class Session {
  readonly program: Program;
  #listener: Listener | undefined;
  readonly #runs: Runs;
  #instance: Instance;
  #memory!: Memory;
  #current!: ExternGlobal;
  #top!: ExternGlobal;
  #left!: ExternGlobal;
  /** The epoch at which `left` is 0. */
  #awaited = FAR;
  #abort = new AbortController();
  #reverse: ReverseRun | undefined;
  /** The repeated run that follows the aborted one. */
  #next: ReverseRun | undefined;
  #breakpoints: ReadonlyMap<number, Breakpoint> = new Map();
  /** Called before each instruction; stops the program with the text that it returns. */
  #watch: (() => string | undefined) | undefined;
  #stepping: Stepping | undefined;
  #wanted: StopReason | undefined;
  /** Resumes the stopped program. */
  #resume: (() => void) | undefined;
  /** Settled when the calls so far have ended. */
  #calls: Promise<unknown> = Promise.resolve();

  /** The program stops at its first instruction if `atEntry`, and never without a listener. */
  constructor(program: Program, runs: Runs, listener: Listener | undefined, atEntry: boolean) {
    this.program = program;
    this.#runs = runs;
    this.#instance = runs.instance;
    this.#listener = listener;
    if (atEntry) this.#wanted = "entry";
    this.#enter(runs.instance, FAR);
    runs.tasks?.listen((thread) => this.#switchTo(thread));
  }

  /** Prepares a run in an instance, which waits for `epoch`. */
  #enter(instance: Instance, epoch: bigint): void {
    const { names } = this.program.instrumented;
    const exports = instance.exports as Record<string, unknown>;
    this.#instance = instance;
    this.#memory = exports[names.memory] as Memory;
    this.#current = exports[names.current] as ExternGlobal;
    this.#top = exports[names.top] as ExternGlobal;
    this.#left = exports[names.left] as ExternGlobal;
    this.#left.value = this.#awaited = epoch;
    this.#abort = new AbortController();
    const relay = NewEngine().compile(RELAY).instantiate({}, {
      "": { stop: (location: number) => this.#hit(location) },
    });
    const table = exports[names.table] as ExternTable;
    table.set(ELEMENT.STOP, (relay.exports as Record<string, unknown>).stop);
    if (this.program.instrumented.isPart) {
      if (this.#runs.clock === undefined) throw new Error("a part of a program needs its clock");
      this.#runs.clock.install(table);
    }
    this.#arm();
  }

  /** True while the program is stopped. */
  get isStopped(): boolean {
    return this.#resume !== undefined;
  }

  /** Runs the start function and then the calls; resolves to the result of the last one. */
  async run(calls: readonly PlannedCall[], context: Context): Promise<unknown> {
    for (;;) {
      try {
        return await this.#run(calls, context);
      } catch (error) {
        const next = this.#next, { again } = this.#runs;
        if (next === undefined || again === undefined) throw error;
        this.#next = undefined;
        this.#reverse = next;
        this.#instance.close();
        this.#enter(again(), next.stage === "before" ? next.from : next.end.epoch);
      }
    }
  }

  async #run(calls: readonly PlannedCall[], context: Context): Promise<unknown> {
    const { start } = this.program.instrumented.names;
    let result: unknown;
    for (const { name, args } of [...(start === undefined ? [] : [{ name: start, args: [] }]), ...calls]) {
      result = await this.#call(name, args, context);
    }
    return result;
  }

  /** Calls an export once the calls before it have ended: all use the same records of frames. */
  call(name: string, args: readonly unknown[], context: Context): Promise<unknown> {
    const result = this.#calls.then(() => this.#call(name, args, context));
    this.#calls = result.catch(() => {});
    return result;
  }

  async #call(name: string, args: readonly unknown[], context: Context): Promise<unknown> {
    const { signal } = this.#abort;
    const limited = context.signal === undefined ? signal : AbortSignal.any([signal, context.signal]);
    return await this.during(() => this.#instance.callAsync({ ...context, signal: limited }, name, ...args));
  }

  /** The thread whose activations the records are, and those of the others, which have left frames. */
  #thread: object = this;
  readonly #saved = new WeakMap<object, SavedRecords>();

  /** Replaces the records by those of another thread; all threads of an instance write them to the same place. */
  #switchTo(thread: object): void {
    if (thread === this.#thread) return;
    const { records } = this.program.instrumented;
    const top = this.#top.value as number;
    if (this.#current.value !== 0) {
      const bytes = new Uint8Array(this.#memory.buffer, records, top - records).slice();
      this.#saved.set(this.#thread, { current: this.#current.value, bytes });
    }
    this.#thread = thread;
    const saved = this.#saved.get(thread);
    this.#saved.delete(thread);
    this.#current.value = saved?.current ?? 0;
    this.#top.value = records + (saved?.bytes.length ?? 0);
    if (saved !== undefined) new Uint8Array(this.#memory.buffer).set(saved.bytes, records);
  }

  /** Makes a call, in which no activation of an earlier one is left; stops where it traps. */
  async during<T>(call: () => Promise<T>): Promise<T> {
    this.begin();
    try {
      return await call();
    } catch (error) {
      if (error instanceof TrapError) await this.stopAtTrap(error);
      throw error;
    }
  }

  /** Forgets the activations of earlier calls. */
  begin(): void {
    this.#switchTo({});
    this.#current.value = 0;
    this.#top.value = this.program.instrumented.records;
    this.#arm(); // a reset of the instance has cleared the flags
  }

  /** Stops at the instruction that trapped, until the program is resumed. */
  async stopAtTrap(error: TrapError): Promise<void> {
    if (this.#abort.signal.aborted) return;
    this.#reverse = undefined;
    this.#placeTrap(error);
    await this.#stop({ reason: "exception", text: error.message });
  }

  /** Whether the innermost activation is the one in which a call has trapped, as far as its function says. */
  hasTrapped({ frames: [frame] }: TrapError): boolean {
    const record = this.#current.value as number;
    if (record === 0 || frame === undefined) return false;
    if (this.#view().getInt32(record + RECORD.FUNC, true) !== frame.funcIndex) return false;
    const location = this.program.locationAtPosition(frame.offset);
    return location >= 0 && this.program.functionAt(location).index === frame.funcIndex;
  }

  /** Moves the innermost frame to the instruction that trapped. */
  #placeTrap(error: TrapError): void {
    const { functions } = this.program.instrumented;
    const end = (functions.at(-1)?.index ?? -1) + 1;
    const frame = error.frames.find(({ funcIndex }) => funcIndex < end);
    const view = this.#view();
    for (
      let record = this.#current.value as number;
      record !== 0;
      record = view.getInt32(record + RECORD.CALLER, true)
    ) {
      if (view.getInt32(record + RECORD.FUNC, true) !== frame?.funcIndex) continue;
      this.#current.value = record;
      view.setInt32(record + RECORD.LOCATION, this.program.locationAtPosition(frame.offset), true);
      return;
    }
  }

  /** Ends the program: the run rejects with an AbortError. */
  terminate(): void {
    this.#next = undefined;
    this.#abort.abort();
    this.#go();
  }

  /** Reports stops to `listener` from now on. Without one, the program goes on, and does not stop any more. */
  listen(listener: Listener | undefined): void {
    this.#listener = listener;
    if (listener !== undefined) return;
    this.#wanted = undefined;
    this.#watch = undefined;
    this.#breakpoints = new Map();
    this.continue();
  }

  /** Replaces all breakpoints. */
  setBreakpoints(breakpoints: readonly Breakpoint[]): void {
    this.#breakpoints = new Map(breakpoints.map((each) => [each.location, each]));
    this.#arm();
  }

  /**
   * Calls `watch` before each instruction, which stops the program with the text that it returns; undefined ends that.
   * Runs back to an earlier moment do not call it.
   */
  setWatch(watch: (() => string | undefined) | undefined): void {
    this.#watch = watch;
    this.#arm();
  }

  /** Resumes the program. */
  continue(): void {
    this.#stepping = undefined;
    this.#arm();
    this.#go();
  }

  /** Stops the running program at its next instruction. */
  pause(reason: StopReason = "pause"): void {
    this.#wanted = reason;
    this.#arm();
  }

  /** Takes {@linkcode pause} and {@linkcode join} back: the program has stopped in another core instance. */
  forget(): void {
    this.#wanted = undefined;
    this.#stepping = undefined;
    this.#arm();
  }

  /**
   * Ends a step of another core instance here, if it returns to the innermost activation, or calls a function that it
   * steps into.
   */
  join(step: Step, byInstruction: boolean): void {
    // Activations that begin from now on have greater records; the innermost one is then like a caller.
    const record = (this.#current.value as number) + 1;
    this.#stepping = { step, byInstruction, thread: this.#thread, record, func: undefined, line: "" };
    this.#arm();
  }

  /** Resumes the program until a step is done. */
  step(step: Step, byInstruction: boolean): void {
    const [frame] = this.frames();
    if (frame !== undefined) {
      const { func, record, location } = frame;
      this.#stepping = { step, byInstruction, thread: this.#thread, record, func, line: this.#lineOf(location) };
    }
    this.#arm();
    this.#go();
  }

  /** The epoch that the program is in. */
  get #epoch(): bigint {
    return this.#awaited - (this.#left.value as bigint);
  }

  /** Throws an Error if the program cannot go back: its run cannot be repeated, or has just begun. */
  requireBack(): void {
    if (this.#runs.again === undefined) {
      throw new Error("components, and programs with plugins or that an editor is attached to, cannot go back");
    }
    if (!this.#runs.canRepeat()) throw new Error("the calls of the host take too much memory to be repeated");
    const [frame] = this.frames();
    if (frame === undefined || (this.#epoch <= 1n && frame.location === frame.func.firstLocation)) {
      throw new Error("this is the beginning of the program");
    }
  }

  /**
   * Resumes the program backwards, which {@linkcode Session.requireBack} permits. Changes of variables and memory by
   * hand are not repeated.
   */
  back(step: StepBack): void {
    const epoch = this.#epoch;
    const frame = this.frames()[0];
    const run = { end: { epoch, location: frame.location }, found: undefined };
    if (step === "instruction") {
      // Every epoch has a location: the one before this moment is in this epoch or in the one before.
      const candidates = new Uint8Array(this.program.locations).fill(1);
      const from = epoch > 1n ? epoch - 1n : 1n;
      this.#restart({ ...run, reason: "step", candidates, accepts: () => true, from, stage: "before" });
      return;
    }
    const isLine = step === "line";
    const accepts = isLine ? this.#lineStart(frame) : (location: number) => this.#matches(location);
    const reason = isLine ? "step" : "breakpoint";
    this.#restart({ ...run, reason, candidates: this.#candidates(isLine), accepts, from: 1n, stage: "within" });
  }

  /** Flags of the locations of all functions on the stack, or of the breakpoints. */
  #candidates(isLine: boolean): Uint8Array {
    const flags = new Uint8Array(this.program.locations);
    if (!isLine) { for (const location of this.#breakpoints.keys()) flags[location] = 1; }
    else for (const { func } of this.frames()) flags.fill(1, func.firstLocation, this.program.endOf(func));
    return flags;
  }

  /** Finds beginnings of lines in the activation of a frame and in those that called it. */
  #lineStart({ record }: Frame): (location: number) => boolean {
    const { sources } = this.program;
    return (location) =>
      (this.#current.value as number) <= record && sources.isShown(location) && sources.beginsLine(location);
  }

  #matches(location: number): boolean {
    const frame = this.frames()[0];
    const matches = this.#breakpoints.get(location)?.matches;
    return matches === undefined || (frame !== undefined && matches(frame));
  }

  /** Ends this run, so that {@linkcode Session.run} begins another one. */
  #restart(reverse: ReverseRun): void {
    this.#next = reverse;
    this.#stepping = undefined;
    this.#abort.abort();
    this.#go();
  }

  /** Handles a call of a repeated run: at the epoch that it waits for, at a candidate, or at its end. */
  #arrived(reverse: ReverseRun, location: number): Promise<void> | undefined {
    if (reverse.stage !== "last" && this.#left.value === 0n) {
      this.#beginStage(reverse);
      return undefined;
    }
    const { end, candidates } = reverse;
    if (reverse.stage === "last" && (end.location < 0 || location === end.location)) return this.#ended(reverse);
    if (candidates !== undefined && candidates[location] !== 0 && reverse.accepts(location)) {
      reverse.found = { epoch: this.#epoch, location };
    }
    return undefined;
  }

  #beginStage(reverse: ReverseRun): void {
    const epoch = this.#epoch;
    reverse.stage = epoch < reverse.end.epoch ? "within" : "last";
    if (reverse.stage === "within") {
      this.#awaited = reverse.end.epoch;
      this.#left.value = this.#awaited - epoch;
    }
    this.#arm();
  }

  /** Stops at the end of a repeated run, or runs again to the moment that it has found. */
  #ended({ reason, candidates, found, accepts }: ReverseRun): Promise<void> {
    if (candidates === undefined) {
      this.#reverse = undefined;
      this.#arm();
      return this.#stop({ reason });
    }
    const end = found ?? { epoch: 1n, location: -1 };
    const isEntry = found === undefined;
    return new Promise((resolve) => {
      this.#resume = resolve;
      const last = { end, candidates: undefined, accepts, from: 1n, found: undefined, stage: "within" } as const;
      setTimeout(() => this.#restart({ ...last, reason: isEntry ? "entry" : reason }), 0);
    });
  }

  /** The frames of the module, innermost first. */
  frames(): Frame[] {
    const view = this.#view();
    const { isPart } = this.program.instrumented;
    const frames: Frame[] = [];
    for (
      let record = this.#current.value as number;
      record !== 0;
      record = view.getInt32(record + RECORD.CALLER, true)
    ) {
      const func = this.program.functionWithIndex(view.getInt32(record + RECORD.FUNC, true));
      if (func === undefined) break;
      frames.push({
        func,
        record,
        location: Math.max(func.firstLocation, view.getInt32(record + RECORD.LOCATION, true)),
        begun: isPart ? view.getBigInt64(record + TIMES.BEGUN, true) : 0n,
        resumed: isPart ? view.getBigInt64(record + TIMES.RESUMED, true) : 0n,
        since: isPart ? view.getBigInt64(record + TIMES.SINCE, true) : 0n,
      });
    }
    return frames;
  }

  /** The value of a numeric local; undefined for a reference. */
  local({ record }: Frame, { type, offset }: LocalSlot): Value | undefined {
    return offset < 0 ? undefined : readNumber(this.#view(), record + offset, type);
  }

  /**
   * Changes a numeric local. Throws a SyntaxError if the text is not a number, a RangeError if its value does not fit
   * the type.
   */
  setLocal({ record }: Frame, { type, offset }: LocalSlot, text: string): void {
    if (offset < 0) throw new RangeError("References cannot be changed");
    writeNumber(this.#view(), record + offset, type, text);
  }

  /** The globals of the module, imported ones first. */
  get globals(): readonly ExternGlobal[] {
    const exports = this.#instance.exports as Record<string, unknown>;
    return this.program.instrumented.names.globals.map((name) => exports[name] as ExternGlobal);
  }

  /** The memories of the module, imported ones first. */
  get memories(): readonly Memory[] {
    const exports = this.#instance.exports as Record<string, unknown>;
    return this.program.instrumented.names.memories.map((name) => exports[name] as Memory);
  }

  #view(): DataView {
    const { buffer, byteOffset, byteLength } = this.#memory.bytes;
    return new DataView(buffer, byteOffset, byteLength);
  }

  #lineOf(location: number): string {
    const { source, line } = this.program.sources.placeOf(location);
    return `${line} ${source.name}`;
  }

  /** Sets the flags of the locations at which the program calls {@linkcode #hit}. */
  #arm(): void {
    const flags = this.#memory.bytes.subarray(0, this.program.locations);
    if (this.#reverse !== undefined) {
      this.#armReverse(flags, this.#reverse);
      return;
    }
    const everywhere = this.#wanted !== undefined || this.#watch !== undefined || this.#stepping?.step === "into";
    flags.fill(everywhere ? 1 : 0);
    if (this.#stepping !== undefined && !everywhere) {
      for (const { func, record } of this.frames()) {
        if (this.#stepping.step === "out" && record === this.#stepping.record) continue;
        flags.fill(1, func.firstLocation, this.program.endOf(func));
      }
    }
    for (const location of this.#breakpoints.keys()) flags[location] = 1;
  }

  #armReverse(flags: Uint8Array, { stage, candidates, end }: ReverseRun): void {
    flags.fill(stage === "last" && end.location < 0 ? 1 : 0);
    if (stage !== "before" && candidates !== undefined) flags.set(candidates);
    if (stage === "last" && end.location >= 0) flags[end.location] = 1;
  }

  /** Called before the instruction at a location whose flag is set, and at the beginning of the awaited epoch. */
  #hit(location: number): unknown {
    if (this.#reverse !== undefined) return this.#arrived(this.#reverse, location);
    const stop = this.#stopAt(location);
    // Code that JavaScript calls without waiting for it, such as an allocator for a string, cannot wait for a command.
    if (stop === undefined || !callCanSuspend()) return undefined;
    const { tasks } = this.#runs;
    const isHeard = this.#listener !== undefined;
    const until = this.#stop(stop);
    return tasks === undefined ? until : isHeard ? tasks.hold(until) : undefined;
  }

  #stopAt(location: number): Stop | undefined {
    if (this.#wanted !== undefined) return { reason: this.#wanted };
    const changed = this.#watch?.();
    if (changed !== undefined) return { reason: "breakpoint", text: changed };
    const breakpoint = this.#breakpoints.get(location);
    if (breakpoint !== undefined) {
      const holds = breakpoint.holds?.(this.frames()[0]) ?? true;
      if (typeof holds === "string") return { reason: "breakpoint", text: holds };
      if (holds) return { reason: "breakpoint" };
    }
    return this.#stepping !== undefined && this.#stepDone(this.#stepping, location) ? { reason: "step" } : undefined;
  }

  #stepDone({ step, byInstruction, thread, record, func, line }: Stepping, location: number): boolean {
    // Activations of other tasks have records of the same addresses.
    if (this.#runs.tasks !== undefined && thread !== this.#thread) return false;
    const current = this.#current.value as number;
    if (step !== "into" && current > record) return false;
    if (byInstruction) return step !== "out" || current < record;
    const { sources } = this.program;
    if (!sources.isShown(location)) return false;
    if (current < record) return true;
    if (step === "out") return false;
    const here = this.program.functionAt(location);
    if (current > record || here !== func) return location === this.program.bodyOf(here);
    return sources.beginsLine(location) && this.#lineOf(location) !== line;
  }

  #stop(stop: Stop): Promise<void> {
    this.#wanted = undefined;
    this.#stepping = undefined;
    const listener = this.#listener;
    if (listener === undefined) return Promise.resolve();
    return new Promise((resolve) => {
      this.#resume = resolve;
      listener.stopped(stop);
    });
  }

  #go(): void {
    const resume = this.#resume;
    this.#resume = undefined;
    resume?.();
  }
}
