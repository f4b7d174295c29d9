/**
 * The class `WASI` of node:wasi on waft's WASI, for packages written for node:wasi, such as every napi-rs package for
 * `wasm32-wasi`. In: options as node:wasi takes them. Out: imports for an instance of waft's WebAssembly, and a start
 * method. Works on every host; errors are those of Node, with their codes.
 *
 * @example
 * ```ts
 * import { WASI } from "@waft/engine/node_wasi";
 * import { WebAssembly } from "@waft/engine/webassembly";
 *
 * const bytes = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0);
 * const wasi = new WASI({ version: "preview1", args: ["program"], preopens: { "/data": "." } });
 * const module = new WebAssembly.Module(bytes); // a program: it exports `memory` and `_start`
 * new WebAssembly.Instance(module, wasi.getImportObject() as WebAssembly.Imports); // then: wasi.start(instance)
 * ```
 *
 * @module
 */
import { inWords, isRecord } from "../base/arguments.ts";
import type { Memory as RuntimeMemory } from "../runtime/memory/memory.ts";
import { Wasi, WasiExit } from "../wasi/mod.ts";
import { MEMORIES } from "../webassembly/memory.ts";

/** The options of node:wasi. */
export interface WASIOptions {
  /** The version of WASI: `preview1`. */
  version: "preview1";
  /** Arguments, the program's name first. Default: none. */
  args?: readonly string[];
  /** Environment variables. Default: none. */
  env?: Readonly<Record<string, string | undefined>>;
  /** Directories of the host by the names under which the guest sees them. Default: none. */
  preopens?: Readonly<Record<string, string>>;
  /** Whether `start` returns the exit status. Otherwise the guest's exit ends this process. Default true. */
  returnOnExit?: boolean;
  /** Descriptor of standard input. Default 0. */
  stdin?: number;
  /** Descriptor of standard output. Default 1. */
  stdout?: number;
  /** Descriptor of standard error. Default 2. */
  stderr?: number;
}

/** The part of an instance that WASI uses. */
interface Exports {
  memory?: unknown;
  _start?: unknown;
  _initialize?: unknown;
}

function coded<E extends Error>(error: E, code: string): E {
  return Object.assign(error, { code });
}

function wrongType(what: string, wanted: string, value: unknown): TypeError {
  return coded(new TypeError(`${what} must be ${wanted}, not ${inWords(value)}`), "ERR_INVALID_ARG_TYPE");
}

function requireRecordOption(options: WASIOptions, name: "env" | "preopens"): void {
  const value = options[name];
  if (value !== undefined && !isRecord(value)) throw wrongType(`The property options.${name}`, "an object", value);
}

function checkOptions(options: WASIOptions): void {
  if (!isRecord(options)) throw wrongType("The argument options", "an object", options);
  const { version, args, returnOnExit } = options;
  if (typeof version !== "string") throw wrongType("The property options.version", "a string", version);
  if (version !== "preview1") {
    const message = `The property options.version must be "preview1", not ${inWords(version)}`;
    throw coded(new TypeError(message), "ERR_INVALID_ARG_VALUE");
  }
  if (args !== undefined && !Array.isArray(args)) throw wrongType("The property options.args", "an array", args);
  requireRecordOption(options, "env");
  requireRecordOption(options, "preopens");
  if (returnOnExit !== undefined && typeof returnOnExit !== "boolean") {
    throw wrongType("The property options.returnOnExit", "a boolean", returnOnExit);
  }
  for (const name of ["stdin", "stdout", "stderr"] as const) checkDescriptor(name, options[name]);
}

function checkDescriptor(name: string, fd: unknown): void {
  if (fd === undefined) return;
  if (typeof fd !== "number") throw wrongType(`The property options.${name}`, "a number", fd);
  if (!Number.isInteger(fd) || fd < 0 || fd > 0x7fffffff) {
    throw coded(new RangeError(`The property options.${name} must be a descriptor, not ${fd}`), "ERR_OUT_OF_RANGE");
  }
}

function requireFunction(exports: Exports, name: "_start" | "_initialize"): () => void {
  const value = exports[name];
  if (typeof value !== "function") throw wrongType(`The export ${name}`, "a function", value);
  return value as () => void;
}

function refuseExport(exports: Exports, name: "_start" | "_initialize"): void {
  if (exports[name] !== undefined) throw wrongType(`The export ${name}`, "undefined", exports[name]);
}

/** The WASI of one instance. */
export class WASI {
  /** The functions of `wasi_snapshot_preview1`. */
  readonly wasiImport: Readonly<Record<string, (...args: never[]) => unknown>>;
  readonly #wasi: Wasi;
  readonly #returnsOnExit: boolean;
  #started = false;

  /**
   * Opens the directories. Throws TypeError and RangeError as Node does, and an Error for a directory that cannot be
   * opened.
   */
  constructor(options: WASIOptions) {
    checkOptions(options);
    const { args = [], env = {}, preopens = {}, returnOnExit = true, stdin = 0, stdout = 1, stderr = 2 } = options;
    this.#returnsOnExit = returnOnExit;
    this.#wasi = new Wasi({
      args: args.map(String),
      env: Object.entries(env).flatMap(([name, value]) => value === undefined ? [] : [[name, String(value)] as const]),
      preopens: Object.entries(preopens).map(([guest, host]) => ({ guest, host: String(host) })),
      stdio: [stdin, stdout, stderr],
    });
    this.wasiImport = this.#wasi.imports;
  }

  /** The imports of an instance. */
  getImportObject(): { wasi_snapshot_preview1: Readonly<Record<string, (...args: never[]) => unknown>> } {
    return { wasi_snapshot_preview1: this.wasiImport };
  }

  /**
   * Connects `memory`, by default the one that `instance` exports, without starting the instance. Throws for a second
   * instance.
   */
  finalizeBindings(instance: object, { memory }: { memory?: unknown } = {}): void {
    if (this.#started) throw coded(new Error("WASI instance has already started"), "ERR_WASI_ALREADY_STARTED");
    const exports = exportsOf(instance);
    this.#wasi.attachMemory(requireMemory(memory ?? exports.memory));
    this.#started = true;
  }

  /** Runs a program, which exports `_start`; its exit status. */
  start(instance: object): number {
    const exports = exportsOf(instance);
    const run = requireFunction(exports, "_start");
    refuseExport(exports, "_initialize");
    this.finalizeBindings(instance);
    try {
      run();
      return 0;
    } catch (error) {
      if (!(error instanceof WasiExit)) throw error;
      if (!this.#returnsOnExit) process.exit(error.status);
      return error.status;
    }
  }

  /** Initializes a library, which exports no `_start`; calls its `_initialize` if it exports one. */
  initialize(instance: object): void {
    const exports = exportsOf(instance);
    refuseExport(exports, "_start");
    const run = exports._initialize === undefined ? undefined : requireFunction(exports, "_initialize");
    this.finalizeBindings(instance);
    run?.();
  }
}

function exportsOf(instance: object): Exports {
  if (!isRecord(instance)) throw wrongType("The argument instance", "an object", instance);
  const { exports } = instance as { exports?: unknown };
  if (typeof exports !== "object" || exports === null) {
    throw wrongType("The property instance.exports", "an object", exports);
  }
  return exports;
}

function requireMemory(value: unknown): RuntimeMemory {
  const memory = MEMORIES.of(value);
  if (memory === undefined) throw wrongType("The export memory", "a WebAssembly.Memory of waft", value);
  return memory;
}
