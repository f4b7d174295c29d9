/**
 * The debugger as its two fronts use it: the adapter for editors and the terminal. In: a program, breakpoints in terms
 * of sources, functions and offsets, commands. Out: stops, frames with places, variables, texts of log points.
 *
 * Breakpoints may be set before and while the program runs; the session gets them as locations.
 */
import type { Context } from "@waft/engine";
import { evaluate, ExpressionError, isTrue, message } from "./expression.ts";
import type { Program } from "./program.ts";
import { type Breakpoint, type Frame, type PlannedCall, type Runs, Session, type Step, type Stop } from "./session.ts";
import type { Place, Source } from "./sources.ts";
import type { Variable } from "./variable.ts";
import { scopesOf } from "./variables.ts";

/** Receives the events of the program. */
interface Observer {
  stopped(stop: Stop): void;
  /** A log point was passed. */
  logged(text: string, place: Place): void;
}

/** A wanted breakpoint. */
export interface BreakpointRequest {
  /** Stop only where this expression is not zero. */
  readonly condition?: string;
  /** Stop only from this hit on. */
  readonly hits?: number;
  /** Message to write instead of stopping. */
  readonly log?: string;
}

/** A breakpoint in a source, at a function or at an offset, and its locations; none if there is no such place. */
export interface PlacedBreakpoint {
  readonly locations: readonly number[];
  /** Its first place. */
  readonly place: Place | undefined;
}

/** A program with the breakpoints and, once started, its session. */
export class Debugger {
  readonly program: Program;
  readonly #observer: Observer;
  /** Breakpoints by owner: a source's, the functions', the offsets'. */
  readonly #breakpoints = new Map<unknown, readonly Breakpoint[]>();
  #session: Session | undefined;

  constructor(program: Program, observer: Observer) {
    this.program = program;
    this.#observer = observer;
  }

  /** The session. Throws an Error before {@linkcode start}. */
  get session(): Session {
    if (this.#session === undefined) throw new Error("the program has not started");
    return this.#session;
  }

  /** Runs the program to its end; resolves to the result of the last call. */
  start(runs: Runs, calls: readonly PlannedCall[], context: Context, atEntry: boolean): Promise<unknown> {
    const listener = { stopped: (stop: Stop) => this.#observer.stopped(stop) };
    this.#session = new Session(this.program, runs, listener, atEntry);
    this.#apply();
    return this.#session.run(calls, context);
  }

  /** Replaces the breakpoints of a source: lines with their conditions. */
  breakInSource(source: Source, lines: readonly (BreakpointRequest & { readonly line: number })[]): PlacedBreakpoint[] {
    return this.#replace(source, lines, ({ line }) => this.program.sources.locationsOf(source, line)?.locations ?? []);
  }

  /** Replaces the breakpoints at the beginnings of functions. */
  breakAtFunctions(names: readonly (BreakpointRequest & { readonly name: string })[]): PlacedBreakpoint[] {
    return this.#replace(
      "functions",
      names,
      ({ name }) => this.program.functionsNamed(name).map((func) => this.program.bodyOf(func)),
    );
  }

  /** Replaces the breakpoints at offsets in the binary form. */
  breakAtOffsets(offsets: readonly (BreakpointRequest & { readonly offset: number })[]): PlacedBreakpoint[] {
    return this.#replace("offsets", offsets, ({ offset }) => {
      const location = this.program.locationAt(offset);
      return location < 0 ? [] : [location];
    });
  }

  #replace<Request extends BreakpointRequest>(
    owner: unknown,
    requests: readonly Request[],
    find: (request: Request) => readonly number[],
  ): PlacedBreakpoint[] {
    const placed = requests.map((request) => ({ request, locations: find(request) }));
    this.#breakpoints.set(
      owner,
      placed.flatMap(({ request, locations }) => locations.map((at) => this.#breakpoint(at, request))),
    );
    this.#apply();
    return placed.map(({ locations }) => ({
      locations,
      place: locations[0] === undefined ? undefined : this.program.sources.placeOf(locations[0]),
    }));
  }

  #apply(): void {
    this.#session?.setBreakpoints([...this.#breakpoints.values()].flat());
  }

  #breakpoint(location: number, { condition, hits, log }: BreakpointRequest): Breakpoint {
    if (condition === undefined && hits === undefined && log === undefined) return { location };
    let count = 0;
    const holds = (frame: Frame): boolean | string => {
      try {
        if (condition !== undefined && !isTrue(this.evaluate(frame, condition))) return false;
      } catch (error) {
        if (error instanceof ExpressionError) return `condition: ${error.message}`;
        throw error;
      }
      if (++count < (hits ?? 1)) return false;
      if (log === undefined) return true;
      this.#observer.logged(message(log, (name) => this.#lookup(frame, name)), this.placeOf(frame));
      return false;
    };
    return { location, holds, matches: (frame) => log === undefined && this.#isMet(frame, condition) };
  }

  /** True if a condition holds; one that cannot be evaluated does. */
  #isMet(frame: Frame, condition: string | undefined): boolean {
    try {
      return condition === undefined || isTrue(this.evaluate(frame, condition));
    } catch (error) {
      if (error instanceof ExpressionError) return true;
      throw error;
    }
  }

  /** The place of a frame. */
  placeOf({ location }: Frame): Place {
    return this.program.sources.placeOf(location);
  }

  /** Evaluates an expression in a frame. Throws ExpressionError. */
  evaluate(frame: Frame, expression: string): Variable {
    return evaluate(expression, (name) => this.#lookup(frame, name));
  }

  #lookup(frame: Frame, name: string): Variable | undefined {
    // `$x` is the name of x in the text format.
    const plain = name.replace(/^\$/, "");
    for (const { variables } of scopesOf(this.session, frame)) {
      const found = variables().find((variable) => variable.name === name || variable.name === plain);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Resumes a stopped program by a step. */
  step(step: Step, byInstruction = false): void {
    this.session.step(step, byInstruction);
  }
}
