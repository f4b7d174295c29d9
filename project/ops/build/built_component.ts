/**
 * Components in applications (application.ts): the binary form of a component, and the artifacts of its core modules.
 * In: a component and the machine to compile it for, or the program of an application. Out: the program, or a run of
 * the component without compiling its core modules. Invariant: the artifacts are in the order in which the component
 * defines its core modules, which is that of their compilation.
 */
import { ArtifactError, Engine, type Machine, type Module } from "@waft/engine";
import { joinArtifact, splitArtifact } from "@waft/component/internal/artifact";
import { decodeComponent } from "@waft/component/internal/binary/decode";
import { validateComponent } from "@waft/component/internal/validate/validate_component";
import type { Component } from "@waft/component/internal/model/definitions";
import { quote } from "../../base/diagnostic.ts";
import { UsageError } from "../../base/failure.ts";
import { damaged } from "./application.ts";
import { compileProgram } from "./compile_program.ts";
import type { GuestInputs } from "../run/run_module.ts";
import { runComponent } from "../run/run_component.ts";

/** The interface of commands, in the versions that run_component.ts runs. */
const COMMAND = /^wasi:cli\/run@0\.[23]\.\d/;

/** The core modules of a component and of the components in it. */
function coreModules({ definitions }: Component): Uint8Array[] {
  return definitions.flatMap((definition) => {
    if (definition.kind === "core module") return [definition.bytes];
    return definition.kind === "component" ? coreModules(definition.component) : [];
  });
}

/**
 * Compiles a component for an application that calls `invoke`, or its command. Rejects with the errors of its
 * compilation, and with a UsageError if it has nothing to call.
 */
export async function buildComponent(
  component: Uint8Array,
  machine: Machine,
  invoke: string | undefined,
): Promise<Uint8Array> {
  const decoded = decodeComponent(component);
  validateComponent(decoded);
  if (invoke === undefined) requireCommand(decoded);
  const modules: Uint8Array[] = [];
  for (const module of coreModules(decoded)) modules.push(await compileProgram(module, machine));
  return joinArtifact({ component, modules });
}

/** Throws a UsageError for a component that an application cannot start. */
function requireCommand({ definitions }: Component): void {
  const names = definitions.flatMap((definition) => definition.kind === "export" ? [definition.name] : []);
  if (names.some((name) => COMMAND.test(name))) return;
  const has = names.length === 0 ? "it exports nothing" : `its exports: ${names.map((name) => quote(name)).join(", ")}`;
  throw new UsageError(
    `the component is not a command, so its executable could not start: it does not export wasi:cli/run; ` +
      `call one of its functions with --invoke (${has})`,
  );
}

type Built = ReturnType<typeof splitArtifact>;

function readBuilt(program: Uint8Array): Built {
  try {
    return splitArtifact(program);
  } catch (error) {
    if (error instanceof ArtifactError) damaged(error.message);
    throw error;
  }
}

/** An engine that loads the artifacts of a component's core modules; it compiles everything else. */
class LoadingEngine extends Engine {
  readonly #component: Uint8Array;
  readonly #artifacts: Iterator<Uint8Array>;

  constructor({ component, modules }: Built) {
    super();
    this.#component = component;
    this.#artifacts = modules.values();
  }

  override compile(source: Uint8Array | ArrayBuffer | string): Module {
    if (!(source instanceof Uint8Array) || source.buffer !== this.#component.buffer) return super.compile(source);
    const { done, value } = this.#artifacts.next();
    return done === true ? super.compile(source) : this.load(value);
  }
}

/** Runs a program of `buildComponent`. Returns the lines to print; throws the errors of runComponent. */
export async function runBuiltComponent(
  name: string,
  program: Uint8Array,
  args: readonly string[],
  inputs: GuestInputs & { readonly invoke?: string },
): Promise<string[]> {
  const built = readBuilt(program);
  return await runComponent(name, built.component, args, { ...inputs, engine: {} }, new LoadingEngine(built));
}
