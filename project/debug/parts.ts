/**
 * The debuggers of a program's parts: one part for a module, one for each core instance of a component. In: programs,
 * their sessions as they begin, breakpoints and commands. Out: the debugger of the part in which the program has
 * stopped, the stack across all parts, and events of all.
 *
 * Invariant: at most one part is stopped. A step goes on in another part where control passes to that: into its
 * functions, or back to the one that called.
 */
import { stackOf, type Times } from "./activation_clock.ts";
import { type BreakpointRequest, Debugger, type Observer, type PlacedBreakpoint } from "./debugger.ts";
import type { Program } from "./program.ts";
import type { Frame, Session, Step, StopReason } from "./session.ts";
import type { Place, Source } from "./sources.ts";

/** A breakpoint in one or more parts. */
export interface PlacedInParts extends PlacedBreakpoint {
  /** The program of its first place. */
  readonly program: Program;
  /** Its locations in each program. */
  readonly byProgram: ReadonlyMap<Program, readonly number[]>;
}

/** A frame of the stack, and its part. */
export interface PartFrame extends Times {
  readonly part: Debugger;
  readonly frame: Frame;
}

/** Receives the events of the parts. */
interface PartsObserver extends Pick<Observer, "stopped"> {
  /** A log point was passed in a program. */
  logged(text: string, place: Place, program: Program): void;
}

/** The parts of a program. */
export class Parts {
  readonly #all: Debugger[];
  readonly #observer: PartsObserver;
  #current: Debugger;
  #hasStopped = false;
  /** The step that is being taken, in which parts join that begin meanwhile. */
  #step: readonly [step: Step, byInstruction: boolean] | undefined;

  /** `programs` are those of the parts, of which there is at least one, the main part first. */
  constructor(programs: readonly Program[], observer: PartsObserver) {
    this.#observer = observer;
    this.#all = programs.map((program) => this.#partOf(program));
    this.#current = this.#all[0];
  }

  /** The parts. A program with several instances has one more for each instance after the first one. */
  get all(): readonly Debugger[] {
    return this.#all;
  }

  #partOf(program: Program): Debugger {
    const part: Debugger = new Debugger(program, {
      stopped: (stop) => {
        this.#current = part;
        this.#hasStopped = true;
        this.#step = undefined;
        for (const other of this.#others()) other.session.forget();
        this.#observer.stopped(stop);
      },
      logged: (text, place) => this.#observer.logged(text, place, program),
    });
    return part;
  }

  /** The part in which the program has stopped last; the main part before that. */
  get current(): Debugger {
    return this.#current;
  }

  /** The other parts that have begun. */
  #others(): Debugger[] {
    return this.#all.filter((part) => part !== this.#current && part.isAttached);
  }

  /**
   * Takes over the session of a part; with `atNext`, the program stops at its next instruction for this reason, unless
   * it has stopped before.
   */
  attach(session: Session, atNext?: StopReason): void {
    const same = this.#all.filter(({ program }) => program === session.program);
    let part = same.find(({ isAttached }) => !isAttached);
    if (part === undefined) {
      this.#all.push(part = this.#partOf(session.program));
      if (same.length > 0) part.adopt(same[0]);
    }
    part.attach(session, this.#hasStopped ? undefined : atNext);
    if (this.#step !== undefined) session.join(...this.#step);
  }

  /** Leaves the program, which goes on and does not stop any more. */
  detach(): void {
    this.#step = undefined;
    for (const part of this.#all) part.detach();
  }

  /** The stack of the stopped program across its parts, innermost frame first. */
  frames(): PartFrame[] {
    const own = framesOf(this.#current);
    if (own.length === 0 || this.all.length === 1) return own;
    return stackOf([...own, ...this.#others().flatMap(framesOf)], own[0]);
  }

  /** Replaces the breakpoints of a source. */
  breakInSource(source: Source, lines: readonly (BreakpointRequest & { readonly line: number })[]): PlacedInParts[] {
    const parts = this.all.filter(({ program }) => program.sources.has(source));
    return this.#inParts(parts, (part) => part.breakInSource(source, lines));
  }

  /** Replaces the breakpoints at the beginnings of functions, in all parts that have them. */
  breakAtFunctions(names: readonly (BreakpointRequest & { readonly name: string })[]): PlacedInParts[] {
    return this.#inParts(this.all, (part) => part.breakAtFunctions(names));
  }

  /** Replaces the breakpoints at offsets in the binary form of a part. */
  breakAtOffsets(
    part: Debugger,
    offsets: readonly (BreakpointRequest & { readonly offset: number })[],
  ): PlacedInParts[] {
    return this.#inParts([part], () => part.breakAtOffsets(offsets));
  }

  #inParts(parts: readonly Debugger[], set: (part: Debugger) => readonly PlacedBreakpoint[]): PlacedInParts[] {
    const placed = parts.map((part) => ({ program: part.program, breakpoints: set(part) }));
    return placed[0].breakpoints.map((_, k) => {
      const found = placed.map(({ program, breakpoints }) => ({ program, ...breakpoints[k] }));
      const byProgram = new Map(found.map(({ program, locations }) => [program, locations]));
      return { ...found.find(({ place }) => place !== undefined) ?? found[0], byProgram };
    });
  }

  /** Stops the running program at its next instruction. */
  pause(): void {
    for (const part of this.#all) if (part.isAttached) part.session.pause();
  }

  /** Resumes the stopped program. */
  continue(): void {
    this.#current.session.continue();
  }

  /** Resumes the stopped program by a step. */
  step(step: Step, byInstruction: boolean): void {
    this.#step = [step, byInstruction];
    for (const { session } of this.#others()) session.join(step, byInstruction);
    this.#current.step(step, byInstruction);
  }

  /** The expressions that are watched in any part. */
  get watched(): readonly string[] {
    return this.all.flatMap(({ watched }) => watched);
  }

  /** Ends the watches of all parts. */
  unwatch(): void {
    for (const part of this.all) if (part.watched.length > 0) part.unwatch();
  }
}

function framesOf(part: Debugger): PartFrame[] {
  return part.session.frames().map((frame) => ({ ...frame, part, frame }));
}
