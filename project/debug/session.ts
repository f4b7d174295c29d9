/**
 * One run of a program under the debugger. In: a program, an instance of its instrumented module, and commands. Out:
 * calls of the listener when the program stops; the state of a stopped program.
 *
 * Invariant: the program runs only between a command that resumes it and the next call of `stopped`; in between, its
 * frames and variables do not change except by the methods here.
 */
import type { Context, ExternGlobal, ExternTable, Instance, Memory } from "@waft/engine";
import { NewEngine, TrapError } from "@waft/engine";
import { type DebuggedFunction, type LocalSlot, RECORD } from "./instrument.ts";
import type { Program } from "./program.ts";
import { readNumber, type Value, writeNumber } from "./values.ts";

/** The reason for which a program stopped. */
type StopReason = "entry" | "breakpoint" | "step" | "pause" | "exception";

/** A stop. */
export interface Stop {
  readonly reason: StopReason;
  /** The message of a trap, or why a condition could not be evaluated. */
  readonly text?: string;
}

/** The extent of a step. */
export type Step = "into" | "over" | "out";

/** An activation of a function; frames are listed from the innermost. */
export interface Frame {
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
}

/** Hears of a session. */
interface Listener {
  stopped(stop: Stop): void;
}

/** A call of an export, in the order of a run. */
export interface PlannedCall {
  readonly name: string;
  readonly args: readonly unknown[];
}

interface Stepping {
  readonly step: Step;
  /** Step by instructions rather than by lines. */
  readonly byInstruction: boolean;
  readonly record: number;
  readonly func: DebuggedFunction;
  readonly line: string;
}

/** Turns a host function into a function reference. */
const RELAY = `(module (import "" "stop" (func $stop (param i32))) (export "stop" (func $stop)))`;

/** A run. */
export class Session {
  readonly program: Program;
  readonly #listener: Listener;
  readonly #instance: Instance;
  readonly #memory: Memory;
  readonly #current: ExternGlobal;
  readonly #top: ExternGlobal;
  readonly #abort = new AbortController();
  #breakpoints: ReadonlyMap<number, Breakpoint> = new Map();
  #stepping: Stepping | undefined;
  #wanted: StopReason | undefined;
  /** Resumes the stopped program. */
  #resume: (() => void) | undefined;

  /** `instance` is one of the program's instrumented module. The program stops at its first instruction if `atEntry`. */
  constructor(program: Program, instance: Instance, listener: Listener, atEntry: boolean) {
    this.program = program;
    this.#instance = instance;
    this.#listener = listener;
    const { names } = program.instrumented;
    const exports = instance.exports as Record<string, unknown>;
    this.#memory = exports[names.memory] as Memory;
    this.#current = exports[names.current] as ExternGlobal;
    this.#top = exports[names.top] as ExternGlobal;
    const relay = NewEngine().compile(RELAY).instantiate({}, {
      "": { stop: (location: number) => this.#hit(location) },
    });
    (exports[names.table] as ExternTable).set(0, (relay.exports as Record<string, unknown>).stop);
    if (atEntry) this.#wanted = "entry";
    this.#arm();
  }

  /** True while the program is stopped. */
  get isStopped(): boolean {
    return this.#resume !== undefined;
  }

  /** Runs the start function and then the calls; resolves to the result of the last one. */
  async run(calls: readonly PlannedCall[], context: Context): Promise<unknown> {
    const { names, records } = this.program.instrumented;
    const start = names.start === undefined ? [] : [{ name: names.start, args: [] }];
    let result: unknown;
    for (const { name, args } of [...start, ...calls]) {
      this.#current.value = 0;
      this.#top.value = records;
      result = await this.#call(name, args, context);
    }
    return result;
  }

  async #call(name: string, args: readonly unknown[], context: Context): Promise<unknown> {
    try {
      return await this.#instance.callAsync({ ...context, signal: this.#abort.signal }, name, ...args);
    } catch (error) {
      if (error instanceof TrapError && !this.#abort.signal.aborted) {
        this.#placeTrap(error);
        await this.#stop({ reason: "exception", text: error.message });
      }
      throw error;
    }
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
    this.#abort.abort();
    this.#go();
  }

  /** Replaces all breakpoints. */
  setBreakpoints(breakpoints: readonly Breakpoint[]): void {
    this.#breakpoints = new Map(breakpoints.map((each) => [each.location, each]));
    this.#arm();
  }

  /** Resumes the program. */
  continue(): void {
    this.#stepping = undefined;
    this.#arm();
    this.#go();
  }

  /** Stops the running program at its next instruction. */
  pause(): void {
    this.#wanted = "pause";
    this.#arm();
  }

  /** Resumes the program until a step is done. */
  step(step: Step, byInstruction: boolean): void {
    const [frame] = this.frames();
    if (frame !== undefined) {
      const { func, record, location } = frame;
      this.#stepping = { step, byInstruction, record, func, line: this.#lineOf(location) };
    }
    this.#arm();
    this.#go();
  }

  /** The frames of the program, innermost first. */
  frames(): Frame[] {
    const view = this.#view();
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
      });
    }
    return frames;
  }

  /** The value of a numeric local; undefined for a reference. */
  local({ record }: Frame, { type, offset }: LocalSlot): Value | undefined {
    return offset < 0 ? undefined : readNumber(this.#view(), record + offset, type);
  }

  /**
   * Changes a numeric local. Throws a SyntaxError if the text is not a number, a RangeError if its value does not fit the type.
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
    const everywhere = this.#wanted !== undefined || this.#stepping?.step === "into";
    flags.fill(everywhere ? 1 : 0);
    if (this.#stepping !== undefined && !everywhere) {
      for (const { func, record } of this.frames()) {
        if (this.#stepping.step === "out" && record === this.#stepping.record) continue;
        flags.fill(1, func.firstLocation, this.program.endOf(func));
      }
    }
    for (const location of this.#breakpoints.keys()) flags[location] = 1;
  }

  /** Called before the instruction at a location whose flag is set. */
  #hit(location: number): Promise<void> | undefined {
    const stop = this.#stopAt(location);
    return stop === undefined ? undefined : this.#stop(stop);
  }

  #stopAt(location: number): Stop | undefined {
    if (this.#wanted !== undefined) return { reason: this.#wanted };
    const breakpoint = this.#breakpoints.get(location);
    if (breakpoint !== undefined) {
      const holds = breakpoint.holds?.(this.frames()[0]!) ?? true;
      if (typeof holds === "string") return { reason: "breakpoint", text: holds };
      if (holds) return { reason: "breakpoint" };
    }
    return this.#stepping !== undefined && this.#stepDone(this.#stepping, location) ? { reason: "step" } : undefined;
  }

  #stepDone({ step, byInstruction, record, func, line }: Stepping, location: number): boolean {
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
    return new Promise((resolve) => {
      this.#resume = resolve;
      this.#listener.stopped(stop);
    });
  }

  #go(): void {
    const resume = this.#resume;
    this.#resume = undefined;
    resume?.();
  }
}
