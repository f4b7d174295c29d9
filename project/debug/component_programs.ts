/**
 * Components for the debugger. In: a component and the options of its engine. Out: a component whose core modules are
 * instrumented, their programs, and the sessions of its instances. Invariant: the component does the same as without
 * the debugger, and calls of one instance are made one after the other.
 */
import { type Context, type Engine, type EngineOptions, type Instance, NewEngine, TrapError } from "@waft/engine";
import { instrumentedOptions, instrumenting } from "@waft/engine/internal/counts/instrumented_form";
import {
  compileBinary,
  type Component,
  type ComponentInstance,
  type CoreDebugger,
  type DebuggedTasks,
} from "@waft/component/internal/component";
import type { ComponentImports } from "@waft/component/internal/link/host_names";
import { binaryOf } from "@waft/component/internal/binary_of";
import { ActivationClock, stackOf } from "./activation_clock.ts";
import { Program } from "./program.ts";
import { Session } from "./session.ts";

/** A core module with functions, and its program. */
export interface CoreProgram {
  readonly name: string;
  readonly program: Program;
}

/** The core modules of one component as they are compiled, and the sessions of their instances. */
export class CorePrograms implements CoreDebugger {
  readonly #name: string;
  readonly #clock: ActivationClock;
  readonly #readMap: ((url: string) => string | undefined) | undefined;
  readonly #byBytes = new Map<Uint8Array, Program>();
  #began: (session: Session) => void = () => {};

  /** `name` is that of the component; `readMap` reads source maps. */
  constructor(name: string, clock: ActivationClock, readMap?: (url: string) => string | undefined) {
    this.#name = name;
    this.#clock = clock;
    this.#readMap = readMap;
  }

  /** Throws an Error for a core module that is too large to be instrumented. */
  formOf(bytes: Uint8Array): Uint8Array {
    const program = new Program(this.#name, bytes, undefined, this.#readMap, true);
    this.#byBytes.set(bytes, program);
    return program.instrumented.bytes;
  }

  instantiated(bytes: Uint8Array, instance: Instance, tasks: DebuggedTasks | undefined): void {
    const program = this.#byBytes.get(bytes)!;
    const session = new Session(
      program,
      { instance, canRepeat: () => false, tasks, clock: this.#clock },
      undefined,
      false,
    );
    const { start } = program.instrumented.names;
    if (program.locations > 0) this.#began(session);
    if (start !== undefined) instance.call({}, start);
  }

  /** Names the core modules with functions once all are compiled; returns them, the one with most code first. */
  named(): CoreProgram[] {
    const found = [...this.#byBytes.values()].filter(({ locations }) => locations > 0)
      .sort((a, b) => b.locations - a.locations);
    for (const [k, program] of found.entries()) if (k > 0) program.rename(`${this.#name}#${k + 1}`);
    return found.map((program) => ({ name: program.name, program }));
  }

  /** Calls `began` with the session of each later instance of a core module with functions, before that runs. */
  observe(began: (session: Session) => void): void {
    this.#began = began;
  }
}

/** A component whose core modules are instrumented. */
export class DebuggedPrograms {
  readonly #component: Component;
  readonly #core: CorePrograms;
  /** The programs of its core modules, the one with most code first. */
  readonly programs: readonly CoreProgram[];

  /**
   * Throws the errors of compilation, and an Error for a core module that is too large to be instrumented.
   * `readMap` reads source maps.
   */
  constructor(
    name: string,
    source: Uint8Array | string,
    options: EngineOptions,
    readMap?: (url: string) => string | undefined,
    clock: ActivationClock = new ActivationClock(),
  ) {
    const engine: Engine = NewEngine({ ...instrumentedOptions(options), interruptible: true });
    const core = this.#core = new CorePrograms(name, clock, readMap);
    this.#component = instrumenting(
      "debugged",
      () => compileBinary(engine, binaryOf(source), { callsBeforeAdapter: 0, coreDebugger: core }),
    );
    this.programs = core.named();
  }

  /** Makes an instance; returns it with the sessions of its core instances, which `began` gets before they run. */
  instantiate(
    context: Context,
    imports: ComponentImports,
    began: (session: Session) => void = () => {},
  ): { readonly instance: ComponentInstance; readonly sessions: readonly Session[] } {
    const sessions: Session[] = [];
    this.#core.observe((session) => {
      sessions.push(session);
      began(session);
    });
    return { instance: this.#component.instantiate(context, imports), sessions };
  }
}

/** Makes a call in which several core instances may stop; a trap stops the one in which it is. */
export async function duringAll<T>(sessions: readonly Session[], call: () => Promise<T>): Promise<T> {
  for (const session of sessions) session.begin();
  try {
    return await call();
  } catch (error) {
    if (error instanceof TrapError) await trappedSession(sessions, error)?.stopAtTrap(error);
    throw error;
  }
}

/** The session in which a call has trapped, or else that of the innermost activation, which has called the host. */
export function trappedSession(sessions: readonly Session[], error: TrapError): Session | undefined {
  const all = sessions.flatMap((session) => session.frames().map((frame) => ({ ...frame, session })));
  const stack = stackOf(all);
  const trapped = stack.find(({ session, record }) =>
    session.hasTrapped(error) && session.frames()[0].record === record
  );
  return (trapped ?? stack[0])?.session;
}
