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
  type DebuggedTasks,
} from "@waft/component/internal/component";
import type { ComponentImports } from "@waft/component/internal/link/host_names";
import { binaryOf } from "@waft/component/internal/binary_of";
import { Program } from "./program.ts";
import { Session } from "./session.ts";

/** A core module with functions, and its program. */
export interface CoreProgram {
  readonly name: string;
  readonly program: Program;
}

/** A component whose core modules are instrumented. */
export class DebuggedPrograms {
  readonly #component: Component;
  /** The programs of its core modules, the one with most code first. */
  readonly programs: readonly CoreProgram[];
  readonly #byBytes = new Map<Uint8Array, Program>();
  /** The sessions of the instance that is being made. */
  #sessions: Session[] = [];

  /**
   * Throws the errors of compilation, and an Error for a core module that is too large to be instrumented.
   * `readMap` reads source maps.
   */
  constructor(
    name: string,
    source: Uint8Array | string,
    options: EngineOptions,
    readMap?: (url: string) => string | undefined,
  ) {
    const engine: Engine = NewEngine({ ...instrumentedOptions(options), interruptible: true });
    this.#component = instrumenting("debugged", () =>
      compileBinary(engine, binaryOf(source), {
        callsBeforeAdapter: 0,
        coreDebugger: {
          formOf: (bytes) => this.#programOf(name, bytes, readMap).instrumented.bytes,
          instantiated: (bytes, instance, tasks) => this.#instantiated(bytes, instance, tasks),
        },
      }));
    const found = [...this.#byBytes.values()].filter(({ locations }) => locations > 0)
      .sort((a, b) => b.locations - a.locations);
    for (const [k, program] of found.entries()) if (k > 0) program.rename(`${name}#${k + 1}`);
    this.programs = found.map((program) => ({ name: program.name, program }));
  }

  #programOf(name: string, bytes: Uint8Array, readMap: ((url: string) => string | undefined) | undefined): Program {
    const program = new Program(name, bytes, undefined, readMap, true);
    this.#byBytes.set(bytes, program);
    return program;
  }

  #instantiated(bytes: Uint8Array, instance: Instance, tasks: DebuggedTasks | undefined): void {
    const program = this.#byBytes.get(bytes)!;
    const session = new Session(program, { instance, canRepeat: () => false, tasks }, undefined, false);
    const { start } = program.instrumented.names;
    if (start !== undefined) instance.call({}, start);
    this.#sessions.push(session);
  }

  /** Makes an instance; returns it with the sessions of its core instances. */
  instantiate(context: Context, imports: ComponentImports): { instance: ComponentInstance; sessions: Session[] } {
    const sessions: Session[] = this.#sessions = [];
    return { instance: this.#component.instantiate(context, imports), sessions };
  }
}

/** Makes a call in which several core instances may stop; a trap stops the one in which it is. */
export async function duringAll<T>(sessions: readonly Session[], call: () => Promise<T>): Promise<T> {
  for (const session of sessions) session.begin();
  try {
    return await call();
  } catch (error) {
    if (error instanceof TrapError) {
      const trapped = sessions.find((session) => session.hasTrapped(error)) ??
        sessions.find((session) => session.frames().length > 0);
      await trapped?.stopAtTrap(error);
    }
    throw error;
  }
}
