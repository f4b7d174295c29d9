/**
 * The debugger as its two fronts use it: the adapter for editors and the terminal. In: a program, breakpoints in terms
 * of sources, functions and offsets, commands. Out: stops, frames with places, variables, texts of log points.
 *
 * Breakpoints may be set before and while the program runs; the session gets them as locations.
 */
import { evaluate, ExpressionError, isTrue, message } from "./expression.ts";
import type { Program } from "./program.ts";
import type { Breakpoint, Frame, Session, Step, Stop, StopReason } from "./session.ts";
import type { Place, Source } from "./sources.ts";
import type { Variable } from "./variable.ts";
import { inlineText, SCOPES_OF_FRAMES, scopesOf } from "./variables.ts";

/** Receives the events of the program. */
export interface Observer {
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

/** A wanted breakpoint and its locations. */
interface LocatedRequest {
  readonly request: BreakpointRequest;
  readonly locations: readonly number[];
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
  /** The requests that they come from. */
  readonly #requests = new Map<unknown, readonly LocatedRequest[]>();
  #session: Session | undefined;
  /** The checks of watched expressions. */
  readonly #watches = new Map<string, () => string | undefined>();

  constructor(program: Program, observer: Observer) {
    this.program = program;
    this.#observer = observer;
  }

  /** Whether the program has a session yet. */
  get isAttached(): boolean {
    return this.#session !== undefined;
  }

  /** The session. Throws an Error before {@linkcode attach}. */
  get session(): Session {
    if (this.#session === undefined) throw new Error("the program has not started");
    return this.#session;
  }

  /**
   * Takes over the session of a program, which may run already; the program stops at its next instruction if there is a
   * reason for that.
   */
  attach(session: Session, atNext?: StopReason): void {
    this.#session = session;
    session.listen({ stopped: (stop) => this.#observer.stopped(stop) });
    this.#apply();
    if (this.#watches.size > 0) this.#applyWatches();
    if (atNext !== undefined) session.pause(atNext);
  }

  /** Leaves the session: the program goes on, and does not stop any more. */
  detach(): void {
    this.#session?.listen(undefined);
    this.#session = undefined;
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
    this.#set(owner, placed);
    this.#apply();
    return placed.map(({ locations }) => ({
      locations,
      place: locations[0] === undefined ? undefined : this.program.sources.placeOf(locations[0]),
    }));
  }

  #set(owner: unknown, placed: readonly LocatedRequest[]): void {
    this.#requests.set(owner, placed);
    this.#breakpoints.set(
      owner,
      placed.flatMap(({ request, locations }) => locations.map((at) => this.#breakpoint(at, request))),
    );
  }

  /** Sets the breakpoints of another debugger of the same program. */
  adopt(other: Debugger): void {
    for (const [owner, placed] of other.#requests) this.#set(owner, placed);
    this.#apply();
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

  /** Whether a condition holds; one that cannot be evaluated does. */
  #isMet(frame: Frame, condition: string | undefined): boolean {
    try {
      return condition === undefined || isTrue(this.evaluate(frame, condition));
    } catch (error) {
      if (error instanceof ExpressionError) return true;
      throw error;
    }
  }

  /**
   * Stops the program whenever the value of an expression has changed, and when the function has returned to which its
   * variables belong. The value is read before each instruction, so the program is slow meanwhile. Throws
   * ExpressionError for an expression without a value in `frame`.
   */
  watch(frame: Frame, expression: string): void {
    let before = inlineText(this.evaluate(frame, expression));
    const { record } = frame;
    const isLocal = this.#readsLocals(frame, expression);
    const check = (): string | undefined => {
      const frames = this.session.frames();
      const here = isLocal ? frames.find((each) => each.record === record && each.func === frame.func) : frames[0];
      if (here === undefined) {
        if (!isLocal) return undefined;
        this.#watches.delete(expression);
        this.#applyWatches();
        return `watch ${expression}: its function has returned`;
      }
      let now: string;
      try {
        now = inlineText(evaluate(expression, (name) => this.#find(here, name, !isLocal)?.variable));
      } catch (error) {
        if (!(error instanceof ExpressionError)) throw error;
        now = error.message;
      }
      if (now === before) return undefined;
      const text = `watch ${expression}: ${before} -> ${now}`;
      before = now;
      return text;
    };
    this.#watches.set(expression, check);
    this.#applyWatches();
  }

  /** The watched expressions. */
  get watched(): readonly string[] {
    return [...this.#watches.keys()];
  }

  /** Ends all watches. */
  unwatch(): void {
    this.#watches.clear();
    this.#applyWatches();
  }

  #applyWatches(): void {
    const watches = this.#watches;
    this.session.setWatch(
      watches.size === 0 ? undefined : () => {
        for (const check of [...watches.values()]) {
          const text = check();
          if (text !== undefined) return text;
        }
        return undefined;
      },
    );
  }

  /** Whether an expression names a variable of the function of a frame. */
  #readsLocals(frame: Frame, expression: string): boolean {
    let isLocal = false;
    evaluate(expression, (name) => {
      const found = this.#find(frame, name);
      isLocal ||= found !== undefined && SCOPES_OF_FRAMES.has(found.scope);
      return found?.variable;
    });
    return isLocal;
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
    return this.#find(frame, name)?.variable;
  }

  /** The variable that a name means in a frame, and its group; with `isShared`, only those that all functions share. */
  #find(frame: Frame, name: string, isShared = false): { scope: string; variable: Variable } | undefined {
    // `$x` is the name of x in the text format.
    const plain = name.replace(/^\$/, "");
    for (const { name: scope, variables } of scopesOf(this.session, frame)) {
      if (isShared && SCOPES_OF_FRAMES.has(scope)) continue;
      const variable = variables().find((each) => each.name === name || each.name === plain);
      if (variable !== undefined) return { scope, variable };
    }
    return undefined;
  }

  /** Resumes a stopped program by a step. */
  step(step: Step, byInstruction = false): void {
    this.session.step(step, byInstruction);
  }
}
