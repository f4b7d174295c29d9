/**
 * Components in applications (application.ts): the binary form of a component, and the artifacts of its core modules.
 * In: a component and the machine to compile it for, or the program of an application. Out: the program, or a run of
 * the component without compiling its core modules. Invariant: an artifact belongs to the core module at its offset in
 * the component.
 *
 * Layout, little-endian: the number of artifacts (u32), the length of the component (u32), per artifact the offset of
 * its module and its length (u32 each); then the component and the artifacts.
 */
import { Engine, type Machine, type Module } from "@waft/engine";
import { decodeComponent } from "../../component/binary/decode.ts";
import { validateComponent } from "../../component/validate/validate_component.ts";
import type { Component } from "../../component/model/definitions.ts";
import { damaged } from "./application.ts";
import { compileProgram } from "./compile_program.ts";
import type { GuestInputs } from "./run_module.ts";
import { runComponent } from "./run_component.ts";

/** A component with the artifacts of its core modules. */
interface BuiltComponent {
  readonly component: Uint8Array;
  /** The artifacts by the offsets of their modules in the component. */
  readonly artifacts: ReadonlyMap<number, Uint8Array>;
}

const HEAD_BYTES = 8, ROW_BYTES = 8;

/** The core modules of a component and of the components in it. */
function coreModules({ definitions }: Component): Uint8Array[] {
  return definitions.flatMap((definition) => {
    if (definition.kind === "core module") return [definition.bytes];
    return definition.kind === "component" ? coreModules(definition.component) : [];
  });
}

/** The offset of a core module in the component; undefined for other sources. */
function offsetIn(component: Uint8Array, source: unknown): number | undefined {
  if (!(source instanceof Uint8Array) || source.buffer !== component.buffer) return undefined;
  return source.byteOffset - component.byteOffset;
}

/** Compiles a component for an application. Rejects with the errors of its compilation. */
export async function buildComponent(component: Uint8Array, machine: Machine): Promise<Uint8Array> {
  const decoded = decodeComponent(component);
  validateComponent(decoded);
  const artifacts = new Map<number, Uint8Array>();
  for (const module of coreModules(decoded)) {
    const offset = offsetIn(component, module);
    if (offset === undefined) throw new Error("a core module is not part of the component");
    artifacts.set(offset, await compileProgram(module, machine));
  }
  return writeBuilt({ component, artifacts });
}

function writeBuilt({ component, artifacts }: BuiltComponent): Uint8Array {
  const rows = [...artifacts];
  const headBytes = HEAD_BYTES + ROW_BYTES * rows.length;
  const program = new Uint8Array(
    rows.reduce((sum, [, { length }]) => sum + length, headBytes + component.length),
  );
  const head = new DataView(program.buffer);
  head.setUint32(0, rows.length, true);
  head.setUint32(4, component.length, true);
  program.set(component, headBytes);
  let at = headBytes + component.length;
  for (const [k, [offset, artifact]] of rows.entries()) {
    head.setUint32(HEAD_BYTES + ROW_BYTES * k, offset, true);
    head.setUint32(HEAD_BYTES + ROW_BYTES * k + 4, artifact.length, true);
    program.set(artifact, at);
    at += artifact.length;
  }
  return program;
}

/** Reads a program of `writeBuilt`. Throws an Error for a damaged one. */
function readBuilt(program: Uint8Array): BuiltComponent {
  const head = new DataView(program.buffer, program.byteOffset, program.length);
  const count = program.length < HEAD_BYTES ? Infinity : head.getUint32(0, true);
  let at = HEAD_BYTES + ROW_BYTES * count;
  const take = (bytes: number): Uint8Array => {
    if (at + bytes > program.length) damaged("its component is longer than the program");
    return program.subarray(at, at += bytes);
  };
  take(0);
  const component = take(head.getUint32(4, true));
  const artifacts = new Map<number, Uint8Array>();
  for (let k = 0; k < count; k++) {
    const row = HEAD_BYTES + ROW_BYTES * k;
    artifacts.set(head.getUint32(row, true), take(head.getUint32(row + 4, true)));
  }
  return { component, artifacts };
}

/** An engine that loads the artifacts of a component's core modules; it compiles everything else. */
class LoadingEngine extends Engine {
  readonly #built: BuiltComponent;

  constructor(built: BuiltComponent) {
    super();
    this.#built = built;
  }

  override compile(source: Uint8Array | ArrayBuffer | string): Module {
    const { component, artifacts } = this.#built;
    const artifact = artifacts.get(offsetIn(component, source) ?? -1);
    return artifact === undefined ? super.compile(source) : this.load(artifact);
  }
}

/** Runs a program of `buildComponent`. Returns the lines to print; throws what runComponent throws. */
export async function runBuiltComponent(
  name: string,
  program: Uint8Array,
  args: readonly string[],
  inputs: GuestInputs & { readonly invoke?: string },
): Promise<string[]> {
  const built = readBuilt(program);
  return await runComponent(name, built.component, args, { ...inputs, engine: {} }, new LoadingEngine(built));
}
