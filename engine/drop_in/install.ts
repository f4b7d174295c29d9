/**
 * Replaces the host's WebAssembly by waft in this realm and in the Workers that it starts. In: nothing; importing this
 * module before the program installs waft (`node --import`, `deno run --preload`, `bun --preload`). Out:
 * `globalThis.WebAssembly` and the class `WASI` of node:wasi are waft's, Module and shared Memory objects survive
 * messages, `.wasm` files can be imported, and every Worker loads this module first.
 *
 * @example
 * ```ts
 * import "@waft/engine/install";
 *
 * const module = new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)); // compiled by waft
 * if (!(structuredClone(module) instanceof WebAssembly.Module)) throw new Error("the module did not survive");
 * ```
 *
 * @module
 */
import { nodeModule } from "../host/process.ts";
import { WebAssembly } from "../webassembly/mod.ts";
import { fromMessage, toMessage } from "../webassembly/messages.ts";
import { type NodeWorkers, patchNodeMessages } from "../webassembly/patches.ts";
import { providedComponents } from "./component_modules.ts";
import { WASI } from "./node_wasi.ts";
import { registerHooks } from "./loader_hooks.ts";
import { delayedScript, moduleStart, scriptStart } from "./worker_start.ts";

/** The URL of the module that Workers load first: this one, or the one that has added components. */
function entry(): string {
  return providedComponents()?.entry ?? import.meta.url;
}

// deno-lint-ignore no-explicit-any
type WorkerClass = new (...args: any[]) => object;

const isDeno = "Deno" in globalThis;
const isBun = "Bun" in globalThis;

/** The absolute URL of a web Worker's program. */
function webUrl(program: unknown): string {
  const base = (globalThis as { location?: { href: string } }).location?.href;
  return program instanceof URL ? program.href : new URL(String(program), base).href;
}

/** The first program of a Node Worker on Deno: `program` is a URL, a path, or with `isText` the source text. */
function nodeStart(program: unknown, isText: boolean | undefined): string {
  if (isText) return scriptStart(entry(), String(program));
  const url = program instanceof URL ? program : nodeModule("node:url").pathToFileURL(String(program));
  return moduleStart(entry(), url.href);
}

/** Options for a Bun Worker that loads this module first. */
function bunOptions(options: { preload?: string | string[] }): object {
  return { ...options, preload: [entry(), ...[options.preload ?? []].flat()] };
}

/** Arguments for a web Worker that loads this module first. */
function webArguments(program: unknown, options: object = {}): unknown[] {
  return isBun ? [program, bunOptions(options)] : [moduleStart(entry(), webUrl(program)), options];
}

/** The options of a Node Worker that this module reads. */
interface NodeOptions {
  workerData?: unknown;
  execArgv?: string[];
  eval?: boolean;
  preload?: string | string[];
}

/** Arguments for a Node Worker that loads this module first; its worker data may contain objects of the namespace. */
function nodeArguments(program: unknown, given: NodeOptions = {}): unknown[] {
  const options = { ...given, workerData: toMessage(given.workerData) };
  if (isBun) return [program, bunOptions(options)];
  if (isDeno) return [new URL(nodeStart(program, given.eval)), { ...options, eval: false }];
  const execArgv = [...given.execArgv ?? process.execArgv];
  const isScript = given.eval === true && !execArgv.some((word) => /^--input-type=module/.test(word));
  return [
    isScript ? delayedScript(entry(), String(program)) : program,
    { ...options, execArgv: execArgv.includes(entry()) ? execArgv : [...execArgv, "--import", entry()] },
  ];
}

/**
 * A subclass of `original` whose instances load this module first: `argumentsFor` rewrites the constructor's arguments.
 */
function startingHere(original: WorkerClass, argumentsFor: (...args: never[]) => unknown[]): WorkerClass {
  return class Worker extends original {
    constructor(...args: unknown[]) {
      super(...argumentsFor(...args as never[]));
    }
  };
}

/**
 * Refuses modules and memories in messages to Workers that were started before this module, which have the host's
 * WebAssembly and would receive data in their place. `installed` is the class of later Workers.
 */
function refuseEarlierWorkers(original: WorkerClass, installed: WorkerClass): void {
  const prototype = original.prototype as { postMessage(...args: unknown[]): unknown };
  const { postMessage } = prototype;
  prototype.postMessage = function (this: unknown, ...args: unknown[]): unknown {
    if (!(this instanceof installed) && toMessage(args[0]) !== args[0]) {
      const reason = "the Worker was started before @waft/engine/install, and has the host's WebAssembly";
      throw new DOMException(
        `Modules and memories could not be cloned: ${reason}. Install it first.`,
        "DataCloneError",
      );
    }
    return Reflect.apply(postMessage, this, args);
  };
}

/** Runs `action` without warnings: Node prints one when its own WASI, which waft replaces, is loaded. */
function withoutWarnings(action: () => void): void {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    action();
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Installs waft. Called by the import of this module; calling it again does nothing. */
export function install(): void {
  const globals = globalThis as unknown as { WebAssembly: unknown; Worker?: WorkerClass };
  if (globals.WebAssembly === WebAssembly) return;
  Object.defineProperty(globalThis, "WebAssembly", { value: WebAssembly, writable: true, configurable: true });
  if (globals.Worker !== undefined) {
    Object.defineProperty(globalThis, "Worker", {
      value: startingHere(globals.Worker, webArguments),
      writable: true,
      configurable: true,
    });
  }
  const workers = nodeModule("node:worker_threads") as unknown as NodeWorkers & { Worker: WorkerClass };
  patchNodeMessages(workers);
  const { Worker } = workers;
  workers.Worker = startingHere(Worker, nodeArguments);
  refuseEarlierWorkers(Worker, workers.Worker);
  if (workers.workerData !== undefined) workers.workerData = fromMessage(workers.workerData);
  withoutWarnings(() => Object.assign(nodeModule("node:wasi"), { WASI }));
  registerHooks();
  nodeModule("node:module").syncBuiltinESMExports();
}

install();
