/**
 * Components in a runner's process. In: operations of the program. Out: answers, calls of the program's functions, and
 * notices about handles. Invariant: a component reaches the program by the functions that its instantiation names, and
 * of the host only what WASI in memory has: clocks and random bytes.
 */
import type { Engine } from "@waft/engine";
import { FuelledError } from "@waft/engine/internal/runner/failures";
import { enforceable, readLimits, writeFuel } from "@waft/engine/internal/runner/limits";
import { readProgramOptions, writeProgramResult } from "@waft/engine/internal/runner/programs";
import type {
  ExtendedRequest,
  ExtensionServices,
  MakeExtension,
  RunnerExtension,
  WriteAnswer,
} from "@waft/engine/internal/runner/service_types";
import type { PayloadReader } from "@waft/engine/internal/runner/values";
import { ComponentError } from "../abi/traps.ts";
import { compileBinary, type Component, type ComponentInstance } from "../component.ts";
import type { FuncType } from "../model/types.ts";
import { runCommand } from "../program/run_command.ts";
import { ComponentWasi } from "../wasi/mod.ts";
import { type ComponentInterface, exportedFunction, type InterfaceFunction, interfaceOf } from "./interface.ts";
import { type InstantiateOptions, OPERATION } from "./operations.ts";
import { dispose, RunnerHandles } from "./runner_handles.ts";

/** A component, with its types. */
interface HeldComponent {
  readonly component: Component;
  readonly bytes: Uint8Array;
  readonly types: ComponentInterface;
}

/** An instance, with its handles. */
interface HeldInstance {
  readonly instance: ComponentInstance;
  readonly types: ComponentInterface;
  readonly handles: RunnerHandles;
  readonly wasi: ComponentWasi | undefined;
}

const nothing: WriteAnswer = () => {};

class Components implements RunnerExtension {
  readonly #services: ExtensionServices;
  readonly #components = new Map<number, HeldComponent>();
  readonly #instances = new Map<number, HeldInstance>();

  constructor(services: ExtensionServices) {
    this.#services = services;
  }

  serve({ operation, id, reader, isNested }: ExtendedRequest): WriteAnswer | Promise<WriteAnswer> {
    if (operation === OPERATION.COMPILE) return this.#compile(id, reader.rest().slice());
    const subject = reader.u32();
    switch (operation) {
      case OPERATION.INSTANTIATE:
        return this.#instantiate(id, this.#component(subject), reader);
      case OPERATION.CALL:
        return this.#call(this.#instance(subject), reader, isNested);
      case OPERATION.RESET: {
        const { instance, handles } = this.#instance(subject);
        instance.reset();
        handles.end();
        return nothing;
      }
      case OPERATION.CLOSE: {
        const { instance, handles, wasi } = this.#instance(subject);
        this.#instances.delete(subject);
        instance.close();
        wasi?.close();
        handles.end();
        return nothing;
      }
      case OPERATION.FORGET:
        this.#components.delete(subject);
        return nothing;
      case OPERATION.RUN:
        return this.#run(this.#component(subject), reader);
      case OPERATION.OUTPUT:
        return this.#output(this.#instance(subject));
      case OPERATION.DROP:
        this.#instance(subject).handles.drop(reader.u32());
        return nothing;
      case OPERATION.PULL:
        return this.#instance(subject).handles.pull(reader.u32());
      case OPERATION.CANCEL:
        return this.#instance(subject).handles.cancel(reader.u32()).then(() => nothing);
      case OPERATION.SUPPLY:
        this.#instances.get(subject)?.handles.supply(reader.u32(), reader);
        return nothing;
      default:
        throw new Error(`A runner with components has no operation ${operation}`);
    }
  }

  #component(id: number): HeldComponent {
    const held = this.#components.get(id);
    if (held === undefined) throw new Error("The component has been closed");
    return held;
  }

  #instance(id: number): HeldInstance {
    const held = this.#instances.get(id);
    if (held === undefined) throw new Error("The instance has been closed");
    return held;
  }

  #compile(id: number, bytes: Uint8Array): WriteAnswer {
    const component = compileBinary(this.#services.engine, bytes);
    this.#components.set(id, { component, bytes, types: interfaceOf(bytes) });
    return nothing;
  }

  #instantiate(id: number, { component, types }: HeldComponent, reader: PayloadReader): WriteAnswer {
    const { context, functions, hasWasi } = JSON.parse(reader.text()) as InstantiateOptions;
    const wasi = hasWasi ? memoryWasi(reader) : undefined;
    const handles = new RunnerHandles(this.#services, id);
    const imports: Record<string, unknown> = { ...wasi?.imports };
    for (const { path, index } of functions) {
      const imported = types.imports.find((row) => row.path.join("\0") === path.join("\0"))!;
      put(imports, path, this.#importedFunction(imported, index, handles));
    }
    try {
      const instance = component.instantiate(enforceable(context, this.#services.engine), imports);
      this.#instances.set(id, { instance, types, handles, wasi });
    } catch (error) {
      wasi?.close();
      throw error;
    }
    return nothing;
  }

  #importedFunction({ type }: InterfaceFunction, index: number, { codec }: RunnerHandles) {
    const { params, result } = type;
    return (...args: unknown[]): unknown => {
      const value = this.#services.callProgram(
        index,
        (writer) => params.forEach((param, k) => codec.write(writer, param.type, args[k])),
        (reader) => result === undefined ? undefined : codec.read(reader, result),
      );
      if (result?.kind !== "result") return value;
      const { tag, val } = value as { tag: string; val: unknown };
      if (tag === "err") throw new ComponentError(val);
      return val;
    };
  }

  #call(held: HeldInstance, reader: PayloadReader, isNested: boolean): WriteAnswer | Promise<WriteAnswer> {
    const { instance, types, handles } = held;
    const name = reader.text();
    const context = readLimits(reader, this.#services.engine);
    const type = exportedFunction(types, name)!;
    if (type.async && isNested) {
      throw new Error("An asynchronous function cannot be called while a call waits for a host function");
    }
    const { value: args, moved } = handles.moving(() =>
      type.params.map((param) => handles.codec.read(reader, param.type))
    );
    const write = (outcome: unknown): WriteAnswer => (writer) => {
      writeFuel(writer, context);
      if (type.result !== undefined) handles.codec.write(writer, type.result, outcome);
    };
    const returned = (value: unknown) => write(type.result?.kind === "result" ? { tag: "ok", val: value } : value);
    const failed = (error: unknown): WriteAnswer => {
      if (error instanceof ComponentError && hasErrorCase(type)) return write({ tag: "err", val: error.payload });
      // Those that did not reach the component: the program has given them up.
      moved.forEach(dispose);
      throw context.fuel === undefined ? error : new FuelledError(error, BigInt(context.fuel));
    };
    try {
      if (!types.usesAsync || isNested) return returned(instance.call(context, name, ...args));
      return instance.callAsync(context, name, ...args).then(returned, failed);
    } catch (error) {
      return failed(error);
    }
  }

  async #run({ bytes }: HeldComponent, reader: PayloadReader): Promise<WriteAnswer> {
    const result = await runCommand(bytes, readProgramOptions(reader.rest()), false);
    return (writer) => writeProgramResult(writer, result);
  }

  #output({ wasi }: HeldInstance): WriteAnswer {
    if (wasi === undefined) throw new TypeError("The instance has no output: it was instantiated without wasi");
    const [stdoutBytes, stderrBytes, files] = [wasi.stdout, wasi.stderr, wasi.files];
    return (writer) =>
      writeProgramResult(writer, { status: 0, stdout: "", stderr: "", stdoutBytes, stderrBytes, files });
  }
}

function hasErrorCase({ result }: FuncType): boolean {
  return result?.kind === "result";
}

/** WASI with the inputs of a message, and with files and streams in memory. */
function memoryWasi(reader: PayloadReader): ComponentWasi {
  const { name = "program", args = [], env = {}, files = {}, stdin } = readProgramOptions(reader.rest());
  return new ComponentWasi({
    args: [name, ...args],
    env: Object.entries(env),
    stdin: stdin as Uint8Array,
    stdout: "collect",
    stderr: "collect",
    files,
  });
}

/** Gives the import with a path of names a function, by its name in WIT. */
function put(imports: Record<string, unknown>, path: readonly string[], run: unknown): void {
  let holder = imports;
  path.slice(0, -1).forEach((name, k) => {
    const inner = Object.hasOwn(holder, name) ? holder[name] as Record<string, unknown> : undefined;
    // An interface of WASI is not changed: the program's functions replace it.
    if (inner === undefined || k === 0 && !OWN.has(inner)) {
      holder[name] = Object.create(null) as Record<string, unknown>;
      OWN.add(holder[name] as object);
    }
    holder = holder[name] as Record<string, unknown>;
  });
  holder[path.at(-1)!] = run;
}

/** Interfaces that messages have made. */
const OWN = new WeakSet<object>();

export const make: MakeExtension = (services) => new Components(services);

/** A component with a function, a resource, a string and an import. */
const COMPONENT = `(component
  (import "host" (func $host (param "text" string)))
  (core module $libc (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 64)))
  (core instance $libc (instantiate $libc))
  (core func $host (canon lower (func $host) (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (core module $m (import "" "host" (func $host (param i32 i32)))
    (func (export "run") (param i32 i32) (call $host (local.get 0) (local.get 1))))
  (core instance $i (instantiate $m (with "" (instance (export "host" (func $host))))))
  (func (export "run") (param "text" string)
    (canon lift (core func $i "run") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc")))))`;

/** Loads all code that components may need later. */
export async function warmUp(engine: Engine): Promise<void> {
  const { binaryOf } = await import("../binary_of.ts");
  const wasi = new ComponentWasi({ stdin: "", stdout: "collect", stderr: "collect", files: { a: "" } });
  const bytes = binaryOf(COMPONENT);
  interfaceOf(bytes);
  const instance = compileBinary(engine, bytes).instantiate({ resettable: true }, { ...wasi.imports, host: () => {} });
  // Adapters of hot functions are compiled.
  for (let k = 0; k < 20; k++) instance.call({}, "run", "text");
  await instance.callAsync({}, "run", "text");
  instance.reset();
  instance.close();
  wasi.close();
  const reader = new ReadableStream({ pull: (controller) => controller.close() }).getReader();
  await reader.read();
}
