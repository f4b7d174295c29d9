/**
 * Plugins of Extism. In: a manifest, options, host functions. Out: calls with input and output. Invariant: a call is
 * alone in its plugin, begins with fresh shared memory, and ends at its deadline, also while it waits for the network.
 */
import {
  type Context,
  type Engine,
  type ExportDescriptor,
  type ImportDescriptor,
  type Instance,
  type Memory,
  type Module,
  NewEngine,
} from "../api/engine.ts";
import { inWords, requireKnownNames, requireRecord } from "../base/arguments.ts";
import { TrapError } from "../base/errors.ts";
import { InstancePool } from "../runtime/instance/instance_pool.ts";
import { Wasi } from "../wasi/mod.ts";
import { type PluginRequest, request } from "./http.ts";
import { KERNEL } from "./kernel.ts";
import { EXTISM_HOST } from "./host_name.ts";
import { type LoadedWasm, type Manifest, type ManifestSettings, readManifest } from "./manifest.ts";

/** Calls that modules which import each other may have in progress: each keeps the frames of its caller in memory. */
const MAX_DEPTH = 10_000;

/** Levels of log messages. */
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "off";

/** The receiver of log messages: `console`, for example. */
export type Logger = Readonly<Record<Exclude<LogLevel, "off">, (message: string) => void>>;

/** A host function: gets the call's context before the plugin's arguments, and may return a promise. */
// deno-lint-ignore no-explicit-any
export type PluginFunction = (context: CallContext, ...args: any[]) => unknown;

/** The options of a plugin; those that the manifest has, too, replace its own. */
export interface PluginOptions extends ManifestSettings {
  /** Provides WASI preview 1. Default: false. */
  useWasi?: boolean;
  /** Makes the WASI of each instance, instead of `useWasi`, `enableWasiOutput` and `allowedPaths`. */
  wasi?: () => Wasi;
  /** Passes standard output and error of WASI to the process. Default: false. */
  enableWasiOutput?: boolean;
  /** Host functions by the module name and the name by which plugins import them. */
  functions?: Readonly<Record<string, Readonly<Record<string, PluginFunction>>>>;
  /** The receiver of log messages. Default: none. */
  logger?: Logger;
  /** The lowest level of messages that the logger gets. Default: `info`. */
  logLevel?: LogLevel;
  /** Sends HTTP requests, and fetches modules. Default: the global `fetch`. */
  fetch?: typeof fetch;
  /** Plugins see the headers of HTTP responses. Default: false. */
  allowHttpResponseHeaders?: boolean;
  /** The engine, which must be interruptible for timeouts. Default: one of its own. */
  engine?: Engine;
}

const OPTION_NAMES: Readonly<Record<keyof PluginOptions, true>> = {
  useWasi: true,
  wasi: true,
  enableWasiOutput: true,
  functions: true,
  logger: true,
  logLevel: true,
  fetch: true,
  allowHttpResponseHeaders: true,
  engine: true,
  config: true,
  allowedHosts: true,
  allowedPaths: true,
  memory: true,
  timeoutMs: true,
};

const LEVELS: readonly LogLevel[] = ["trace", "debug", "info", "warn", "error", "off"];
const LOG_LEVELS = ["trace", "debug", "info", "warn", "error"] as const;
const MAX_HTTP_BYTES = 50 << 20;
const MAX_VAR_BYTES = 1 << 20;
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** The output of a call, or a block of shared memory: a copy. */
export class PluginOutput extends DataView<ArrayBuffer> {
  /** The bytes as text in UTF-8. */
  text(): string {
    return DECODER.decode(this);
  }

  /** The same as {@linkcode PluginOutput.text}. */
  string(): string {
    return this.text();
  }

  /** The value of the bytes as JSON. */
  json(): unknown {
    return JSON.parse(this.text());
  }

  /** The bytes. */
  bytes(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.buffer);
  }

  /** The buffer of the bytes. */
  arrayBuffer(): ArrayBuffer {
    return this.buffer;
  }
}

/** The kernel's functions that the host uses. */
type KernelExports = Readonly<Record<string, (...args: bigint[]) => bigint | undefined>>;

/** A host function's access to the memory and the variables of the plugin that calls it. */
export class CallContext {
  readonly #kernel: Instance;
  readonly #variables: Map<string, Uint8Array>;
  readonly #maxVarBytes: number;
  #host: unknown;

  /** @internal */
  constructor(kernel: Instance, maxVarBytes: number) {
    this.#kernel = kernel;
    this.#variables = new Map();
    this.#maxVarBytes = maxVarBytes;
  }

  get #functions(): KernelExports {
    return this.#kernel.exports as unknown as KernelExports;
  }

  /** Allocates a block; returns its address, 0 if there is no memory. */
  alloc(bytes: bigint | number): bigint {
    return this.#functions["alloc"](BigInt(bytes))!;
  }

  /** The bytes of the block at an address, 0 if there is none. */
  length(address: bigint): bigint {
    return this.#functions["length"](BigInt(address))!;
  }

  /** A copy of the block at an address; null for the address 0. Throws RangeError for other bytes. */
  read(address: bigint | number): PluginOutput | null {
    const at = BigInt(address);
    return at === 0n ? null : this.readRange(at, this.length(at));
  }

  /** @internal */
  readRange(at: bigint, length: bigint): PluginOutput {
    const memory = this.#kernel.exports["memory"] as Memory;
    if (at < 0n || length < 0n || at + length > BigInt(memory.byteLength)) {
      throw new RangeError(`A plugin has named ${length} bytes at ${at}, outside of its shared memory`);
    }
    return new PluginOutput(memory.bytes.slice(Number(at), Number(at + length)).buffer as ArrayBuffer);
  }

  /** Stores bytes or text in a new block; returns its address, 0 for none. */
  store(contents: Uint8Array | string): bigint {
    const bytes = typeof contents === "string" ? ENCODER.encode(contents) : contents;
    if (bytes.length === 0) return 0n;
    const at = this.alloc(bytes.length);
    if (at === 0n) throw new RangeError(`The shared memory of the plugin has no room for ${bytes.length} bytes`);
    (this.#kernel.exports["memory"] as Memory).bytes.set(bytes, Number(at));
    return at;
  }

  /** A variable of the plugin; null if it does not exist. */
  getVariable(name: string): PluginOutput | null {
    const bytes = this.#variables.get(name);
    return bytes === undefined ? null : new PluginOutput(bytes.slice().buffer as ArrayBuffer);
  }

  /** Sets a variable of the plugin, or removes it. Throws RangeError beyond the limit maxVarBytes. */
  setVariable(name: string, value: string | Uint8Array | null): void {
    if (value === null) {
      this.#variables.delete(name);
      return;
    }
    const bytes = typeof value === "string" ? ENCODER.encode(value) : value.slice();
    let total = bytes.length;
    for (const [other, { length }] of this.#variables) if (other !== name) total += length;
    if (total > this.#maxVarBytes) {
      throw new RangeError(`The variables of the plugin exceed the limit maxVarBytes of ${this.#maxVarBytes} bytes`);
    }
    this.#variables.set(name, bytes);
  }

  /** The value that the program has passed to `call`. */
  hostContext<T = unknown>(): T {
    return this.#host as T;
  }

  /** Begins a call: gives the plugin its input. @internal */
  begin(input: Uint8Array, host: unknown): void {
    this.#host = host;
    this.#functions["reset"]();
    this.#functions["input_set"](this.store(input), BigInt(input.length));
  }

  /** The output of the call, and the error that the plugin has set. @internal */
  result(): { output: PluginOutput | null; error: string | undefined } {
    const error = this.#functions["error_get"]()!;
    if (error !== 0n) return { output: null, error: this.read(error)!.text() };
    const length = this.#functions["output_length"]()!;
    const output = length === 0n ? null : this.readRange(this.#functions["output_offset"]()!, length);
    return { output, error: undefined };
  }

  /** Forgets all variables. @internal */
  clear(): void {
    this.#variables.clear();
  }
}

/** A compiled plugin, of which instances are made. */
export class CompiledPlugin {
  readonly #kernel: Module;
  readonly #modules: readonly { readonly name: string; readonly module: Module }[];
  readonly #options: PluginOptions;

  /** @internal */
  constructor(engine: Engine, wasm: readonly LoadedWasm[], options: PluginOptions) {
    this.#kernel = engine.compile(KERNEL);
    this.#modules = wasm.map(({ name, bytes }) => ({ name, module: engine.compile(bytes) }));
    this.#options = options;
  }

  /** Makes a plugin with memory and variables of its own. Rejects with the errors of instantiation. */
  async instantiate(): Promise<Plugin> {
    const plugin = this.#make();
    await plugin.initialize();
    return plugin;
  }

  /**
   * A pool of plugins: `take` gives one in its initial state, whoever used it before. A plugin is initialized by its
   * first call.
   */
  pool({ size }: { size: number }): InstancePool<Plugin> {
    return new InstancePool(() => this.#make(), size);
  }

  #make(): Plugin {
    return new Plugin(this.#kernel, this.#modules, this.#options);
  }
}

/** A plugin. Calls of it run one after the other. */
export class Plugin {
  readonly #context: CallContext;
  readonly #kernel: Instance;
  readonly #instances: Map<string, Instance> = new Map();
  readonly #main: Instance;
  readonly #mainModule: Module;
  readonly #options: PluginOptions;
  readonly #wasi: Wasi | undefined;
  /** Of the last HTTP response of the call in progress. */
  #status = 0;
  #headers: Readonly<Record<string, string>> | undefined;
  /** Aborts the HTTP requests of the call in progress when it ends. */
  #requests: AbortController = new AbortController();
  /** The end of the last call. */
  #last: Promise<unknown> = Promise.resolve();
  #isActive = false;
  /** The number of calls in progress between modules that import each other. */
  #depth = 0;
  #isInitialized = false;

  /** @internal */
  constructor(
    kernel: Module,
    modules: readonly { readonly name: string; readonly module: Module }[],
    options: PluginOptions,
  ) {
    this.#options = options;
    this.#kernel = kernel.instantiate({ resettable: true });
    this.#context = new CallContext(this.#kernel, options.memory?.maxVarBytes ?? MAX_VAR_BYTES);
    this.#wasi = options.wasi?.() ?? (options.useWasi === true ? this.#openWasi() : undefined);
    const imports = this.#imports();
    const under = new Set<string>();
    const make = (name: string, module: Module): Instance => {
      const known = this.#instances.get(name);
      if (known !== undefined) return known;
      under.add(name);
      const linked = { ...imports };
      for (const { module: from } of module.imports) {
        const other = modules.find((entry) => entry.name === from);
        if (other === undefined || imports[from] !== undefined) continue;
        const isCycle = under.has(from) && !this.#instances.has(from);
        linked[from] = isCycle ? this.#later(name, module, from, other.module) : make(from, other.module).exports;
      }
      const instance = module.instantiate({ resettable: true, ...this.#limits() }, linked);
      this.#instances.set(name, instance);
      return instance;
    };
    const main = modules.find(({ name }) => name === "main") ?? modules.at(-1)!;
    this.#mainModule = main.module;
    this.#main = make(main.name, main.module);
    this.#wasi?.attach(this.#main);
  }

  /**
   * The imports of module `name` from one that is not instantiated yet, because it imports from the former: functions
   * that find theirs when they are called. Throws TypeError for imports of other kinds, and for those that the other
   * module does not export.
   */
  #later(name: string, { imports }: Module, from: string, { exports }: Module): Record<string, unknown> {
    const functions: Record<string, unknown> = Object.create(null);
    for (const { module, name: wanted, kind, type } of imports) {
      if (module !== from) continue;
      const given = exports.find((entry) => entry.name === wanted);
      if (kind !== "func") {
        throw new TypeError(
          `The modules "${name}" and "${from}" import each other: the ${kind} "${wanted}" does not exist in time`,
        );
      }
      if (given?.type !== type) {
        const found = given === undefined ? "nothing of that name" : given.type;
        throw new TypeError(`"${name}" imports "${wanted}" of type ${type} from "${from}", which exports ${found}`);
      }
      functions[wanted] = (...args: unknown[]) => this.#callAcross(from, wanted, args);
    }
    return functions;
  }

  /** Calls a function of a module for another one in a cycle of imports; while a call is in progress, it may wait. */
  #callAcross(from: string, name: string, args: readonly unknown[]): unknown {
    const instance = this.#instances.get(from);
    if (instance === undefined) throw new TypeError(`The module "${from}" is called before it is instantiated`);
    return this.#isActive ? this.#callLater(instance, name, args) : instance.call({}, name, ...args);
  }

  /** Calls a function when its caller is suspended, so that the calls need no stack of JavaScript together. */
  async #callLater(instance: Instance, name: string, args: readonly unknown[]): Promise<unknown> {
    if (this.#depth === MAX_DEPTH) throw new TrapError("call stack exhausted");
    this.#depth++;
    try {
      const { signal } = this.#requests; // of the plugin's call, whose end ends this one
      await undefined;
      return await instance.callAsync({ ...this.#limits(), signal }, name, ...args);
    } finally {
      this.#depth--;
    }
  }

  #limits(): Context {
    const { timeoutMs } = this.#options;
    return timeoutMs === undefined ? {} : { deadline: timeoutMs };
  }

  #openWasi(): Wasi {
    const { allowedPaths = {}, enableWasiOutput } = this.#options;
    const preopens = Object.entries(allowedPaths).map(([guest, host]) => ({ host, guest }));
    const drop = () => {};
    return new Wasi({ preopens, stdin: "", ...(enableWasiOutput === true ? {} : { stdout: drop, stderr: drop }) });
  }

  #imports(): Record<string, Record<string, unknown>> {
    const { functions = {} } = this.#options;
    const imports: Record<string, Record<string, unknown>> = Object.create(null);
    imports[EXTISM_HOST] = { ...this.#kernel.exports, ...this.#services() };
    if (this.#wasi !== undefined) imports["wasi_snapshot_preview1"] = this.#wasi.imports;
    for (const [module, own] of Object.entries(functions)) {
      const bound: Record<string, unknown> = imports[module] ??= Object.create(null) as Record<string, unknown>;
      for (const [name, run] of Object.entries(own)) {
        bound[name] = (...args: unknown[]) => run(this.#context, ...args);
      }
    }
    return imports;
  }

  /** The functions of `extism:host/env` that are not the kernel's. */
  #services(): Record<string, unknown> {
    const context = this.#context;
    const { config = {}, logger, logLevel = "info" } = this.#options;
    const text = (at: bigint) => context.read(at)?.text() ?? "";
    const log = (level: (typeof LOG_LEVELS)[number]) => (at: bigint) => {
      if (LEVELS.indexOf(level) >= LEVELS.indexOf(logLevel)) logger?.[level](text(at));
    };
    return {
      config_get: (at: bigint) => {
        const name = text(at);
        return Object.hasOwn(config, name) ? context.store(config[name]) : 0n;
      },
      var_get: (at: bigint) => {
        const value = context.getVariable(text(at));
        return value === null ? 0n : context.store(value.bytes());
      },
      var_set: (at: bigint, value: bigint) => context.setVariable(text(at), context.read(value)?.bytes() ?? null),
      http_request: (at: bigint, body: bigint) => this.#request(text(at), context.read(body)?.bytes()),
      http_status_code: () => this.#status,
      http_headers: () => this.#headers === undefined ? 0n : context.store(JSON.stringify(this.#headers)),
      get_log_level: () => logLevel === "off" ? 0x7fffffff : LEVELS.indexOf(logLevel),
      ...Object.fromEntries(LOG_LEVELS.map((level) => [`log_${level}`, log(level)])),
    };
  }

  async #request(json: string, body: Uint8Array<ArrayBuffer> | undefined): Promise<bigint> {
    const { allowedHosts = [], memory, allowHttpResponseHeaders } = this.#options;
    const wanted = JSON.parse(json) as PluginRequest;
    const send = this.#options.fetch ?? fetch;
    const maxBytes = memory?.maxHttpResponseBytes ?? MAX_HTTP_BYTES;
    const { signal } = this.#requests;
    this.#status = 0;
    this.#headers = undefined;
    const response = await request(wanted, body, allowedHosts, maxBytes, send, signal);
    signal.throwIfAborted(); // a later call must not get it
    this.#status = response.status;
    if (allowHttpResponseHeaders === true) this.#headers = response.headers;
    return this.#context.store(response.body);
  }

  /** Runs the initialization of the plugin's language, once. @internal */
  async initialize(): Promise<void> {
    if (this.#isInitialized) return;
    this.#isInitialized = true;
    const names = new Set(this.#mainModule.exports.map(({ name }) => name));
    for (const name of ["_initialize", "hs_init", "__wasm_call_ctors"]) {
      if (!names.has(name) || (name === "__wasm_call_ctors" && names.has("_initialize"))) continue;
      await this.#main.callAsync(this.#limits(), name, ...(name === "hs_init" ? [0, 0] : []));
    }
  }

  /** Whether the plugin exports a function. */
  functionExists(name: string): Promise<boolean> {
    return Promise.resolve(this.#has(name));
  }

  #has(name: string): boolean {
    return this.#mainModule.exports.some((entry) => entry.name === name && entry.kind === "func");
  }

  /**
   * Calls an exported function with an input; resolves with its output, null if there is none. `hostContext` is for
   * host functions.
   *
   * Rejects with an Error that has the text of the plugin's error, with the TrapError of a trap, `interrupted` at the
   * timeout, and with the errors of host functions.
   */
  call(name: string, input: string | number | Uint8Array = "", hostContext?: unknown): Promise<PluginOutput | null> {
    const next = this.#last.then(() => this.#call(name, input, hostContext));
    this.#last = next.catch(() => {});
    return next;
  }

  async #call(name: string, input: string | number | Uint8Array, host: unknown): Promise<PluginOutput | null> {
    if (!this.#has(name)) throw new Error(`The plugin exports no function ${inWords(name)}`);
    const bytes = input instanceof Uint8Array ? input : ENCODER.encode(String(input));
    this.#isActive = true;
    this.#requests = new AbortController();
    this.#status = 0;
    this.#headers = undefined;
    try {
      await this.initialize();
      this.#context.begin(bytes, host);
      await this.#main.callAsync(this.#limits(), name);
      const { output, error } = this.#context.result();
      if (error !== undefined) throw new Error(`The plugin reports an error: ${error}`);
      return output;
    } finally {
      this.#requests.abort();
      this.#isActive = false;
    }
  }

  /** Whether a call is in progress. */
  isActive(): boolean {
    return this.#isActive;
  }

  /** The exports of the main module. */
  getExports(): Promise<ExportDescriptor[]> {
    return Promise.resolve(this.#mainModule.exports);
  }

  /** The imports of the main module. */
  getImports(): Promise<ImportDescriptor[]> {
    return Promise.resolve(this.#mainModule.imports);
  }

  /**
   * Resets memories, globals, tables and variables to their state after instantiation. Throws an Error while a call is
   * in progress.
   */
  reset(): void {
    if (this.#isActive) throw new Error("The plugin cannot be reset while a call is in progress");
    for (const instance of [...this.#instances.values(), this.#kernel]) instance.reset();
    this.#context.clear();
    this.#isInitialized = false;
  }

  /** Closes the plugin, and releases its memory. */
  close(): void {
    for (const instance of [...this.#instances.values(), this.#kernel]) instance.close();
    this.#wasi?.close();
  }
}

/**
 * Compiles a plugin: a manifest, the bytes of a module, or the address of either. Rejects with TypeError for options
 * and manifests that are refused, and with the errors of compilation.
 */
export async function compilePlugin(
  manifest: Manifest | Uint8Array | ArrayBuffer | string | URL,
  options: PluginOptions = {},
): Promise<CompiledPlugin> {
  requireRecord(options, "The options of a plugin");
  requireKnownNames("option of a plugin", options, OPTION_NAMES);
  const { modules, settings } = await readManifest(manifest, options.fetch ?? fetch);
  const merged: PluginOptions = { ...settings, ...options, memory: { ...settings.memory, ...options.memory } };
  const { maxPages } = merged.memory ?? {};
  const engine = options.engine ?? NewEngine({
    interruptible: true,
    ...(maxPages === undefined ? {} : { limits: { maxMemoryPages: maxPages } }),
  });
  if (merged.timeoutMs !== undefined && !engine.interruptible) {
    throw new TypeError("A timeout requires an engine created with { interruptible: true }");
  }
  return new CompiledPlugin(engine, modules, merged);
}

/** Makes a plugin: compiles it, and instantiates it once. Rejects as {@linkcode compilePlugin}. */
export async function createPlugin(
  manifest: Manifest | Uint8Array | ArrayBuffer | string | URL,
  options: PluginOptions = {},
): Promise<Plugin> {
  return await (await compilePlugin(manifest, options)).instantiate();
}
