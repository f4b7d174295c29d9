/**
 * Replay of a recording. In: a log (recorder.ts). Out: the end of the run: results or error, fuel, and the hash of the
 * state. The guest runs again, in any tier and on any machine; the log takes the place of its host.
 *
 * The replay reads the events in order (events.ts). Events of the host are repeated; events of the guest are written
 * again and compared with the log.
 *
 * Invariant: a replay that does not repeat the recording ends with a RecordingError that names the first event that
 * differs. Guest code cannot catch it.
 */
import { THREAD } from "../abi/context_layout.ts";
import { STRING_MODULE, type StringBuiltin } from "../abi/string_layout.ts";
import { type ByteReader, ByteWriter } from "../base/bytes.ts";
import { requireKnownNames, requireRecord, wholeNumber } from "../base/arguments.ts";
import { toHex } from "../base/hex.ts";
import { NewEngine } from "../api/engine.ts";
import { ExhaustionError, MalformedError, TrapError } from "../base/errors.ts";
import { FEATURE_ROWS, type FeatureName, PROPOSAL_ROWS } from "../settings/features.ts";
import { Tag } from "../runtime/exceptions/exception.ts";
import type { ControlContext } from "../runtime/suspension/call_limits.ts";
import { startCall } from "../runtime/suspension/async_call.ts";
import type { BoundaryFunction, CallRecorder } from "../runtime/suspension/call_recorder.ts";
import type { CompiledModule } from "../runtime/code/compiled_module.ts";
import { Global } from "../runtime/instance/global.ts";
import type { Instance } from "../runtime/instance/instance.ts";
import { DEFAULT_LIMITS, type Imports, type InstanceLimits, instantiate } from "../runtime/instance/instantiate.ts";
import type { Store } from "../runtime/instance/store.ts";
import { MAX_TABLE_ELEMENTS, Table } from "../runtime/instance/table.ts";
import { Suspension } from "../runtime/boundary/suspension.ts";
import { readValue } from "../runtime/boundary/values.ts";
import { Memory } from "../runtime/memory/memory.ts";
import { realmStore } from "../runtime/realm_store.ts";
import { STRING_FUNCTIONS } from "../runtime/strings/string_builtins.ts";
import type { EngineOptions } from "../api/settings.ts";
import type { StackRule } from "../settings/code_settings.ts";
import type { Import } from "../wasm/module.ts";
import { hasBuiltinType } from "../wasm/string_imports.ts";
import { closeFuncType } from "../wasm/subtype.ts";
import { type FuncType, isGuardable, isRef, PAGE_BYTES, pageBytes } from "../wasm/types.ts";
import { EVENT, EVENT_NAMES, readCode, type RecordedCode } from "./events.ts";
import { type Exhaustion, isAt, readExhaustion } from "./exhaustion.ts";
import { applyChanges, readGlobalValue, stateHash } from "./host_changes.ts";
import { LogReader, RecordingError } from "./log_file.ts";
import { resultList, Values } from "./values.ts";

const FUEL = THREAD.FUEL >> 3;
const DEPTH_LEFT = THREAD.DEPTH_LEFT >> 2;
const DEPTH_STOP = THREAD.DEPTH_STOP >> 2;
/** The value of THREAD.DEPTH_LEFT without a limit. */
const UNCOUNTED_DEPTH = 0x7fffffff;

/** A call of the host in a replay. */
export interface ReplayedHostCall {
  /** The two parts of the import's name. */
  readonly module: string;
  readonly name: string;
  readonly args: readonly unknown[];
  readonly results: readonly unknown[];
  /** The first memory of the instance, with the host's changes; valid during the call only. */
  readonly memory: Uint8Array | undefined;
}

/** Options of a replay. The options of the engine do not change the result. */
export interface ReplayOptions extends Pick<EngineOptions, "tier" | "bounds" | "optimizations"> {
  /**
   * The maximum size of each memory, in pages of 64 KiB; by default that of engines, 1 GiB. A recording of a run with
   * larger memories is refused.
   */
  maxMemoryPages?: number;
  /** Called after each function of the host that has returned. */
  observe?: (call: ReplayedHostCall) => void;
}

/** The end of a replay. */
export interface ReplayEnd {
  /** The results of the last call that was not made by a host function; empty if it failed. */
  readonly results: readonly unknown[];
  /** The types of the results, as encoded in wasm/types.ts. */
  readonly types: readonly number[];
  /** The error of that call, or of the instantiation: a TrapError has the frames of the guest and its core dump. */
  readonly error: unknown;
  /** The numbers of calls of the guest and of the host. */
  readonly calls: number;
  readonly hostCalls: number;
  /** The fuel that all calls have used; 0n if the recorded engine did not meter. */
  readonly fuel: bigint;
  /** SHA-256 of memories, globals and the lengths of tables, in hexadecimal digits. */
  readonly hash: string;
}

const OPTION_NAMES: Readonly<Record<keyof ReplayOptions, true>> = {
  tier: true,
  bounds: true,
  optimizations: true,
  maxMemoryPages: true,
  observe: true,
};

/**
 * Repeats the run in `log`, without its host. Throws RecordingError for a log that is damaged, with the place, and for
 * a run that does not repeat, with the event.
 */
export function replay(log: Uint8Array, options: ReplayOptions = {}): ReplayEnd {
  requireRecord(options, "The options of a replay");
  requireKnownNames("replay option", options, OPTION_NAMES);
  if (options.maxMemoryPages !== undefined) wholeNumber(options.maxMemoryPages, "The replay option maxMemoryPages");
  const reader = new LogReader(log);
  return reader.reading(() => new Replay(reader, options).run());
}

/** All features that deterministic code can have; the recorded engine has accepted the module. */
function allFeatures(): Partial<Record<FeatureName, boolean>> {
  const rows = [...FEATURE_ROWS, ...PROPOSAL_ROWS];
  return Object.fromEntries(rows.map(({ name }) => [name, name !== "threads"]));
}

/** A suspended call. */
interface Suspended {
  readonly suspension: Suspension;
}

/** An interruption of the guest before the host gets control again. */
interface Interruption {
  /** The fuel that was taken away, so that the code stops at the place of the interruption. */
  readonly debt: bigint;
}

class Replay implements CallRecorder {
  /** @internal */
  readonly isReplay = true;
  readonly #log: LogReader;
  readonly #options: ReplayOptions;
  readonly #store: Store;
  readonly #values: Values;
  readonly #suspended = new Map<number, Suspended>();
  readonly #imports: { module: string; name: string }[] = [];
  #instance: Instance | undefined;
  #interruption: Interruption | undefined;
  /** The stack exhaustion that is due before the next call of the host. */
  #exhaustion: Exhaustion | undefined;
  /** True once the guest has got there. */
  #isExhausted = false;
  /** The error for the stack of the replay itself, which should never be exhausted. */
  #ownExhaustion: Error | undefined;
  #begun: { error: unknown } | undefined;
  #asynchronous = 0;
  #depth = 0;
  #fuel = 0n;
  #calls = 0;
  #hostCalls = 0;
  #results: readonly unknown[] = [];
  #types: readonly number[] = [];
  #error: unknown;
  /** The error with which the replay ends early. */
  #departure: unknown;

  constructor(log: LogReader, options: ReplayOptions) {
    this.#log = log;
    this.#options = options;
    this.#store = realmStore();
    this.#values = new Values(() => this.#instance ?? this.#log.fail("a function before the instantiation"));
  }

  run(): ReplayEnd {
    this.#instantiate();
    while (this.#log.kind !== EVENT.END) this.#step();
    const reader = this.#log.event();
    applyChanges(reader, this.#instance!, this.#values);
    const fuel = reader.u64BigInt();
    const hash = toHex(reader.take(32));
    const end = {
      results: this.#results,
      types: this.#types,
      error: this.#error,
      calls: this.#calls,
      hostCalls: this.#hostCalls,
      fuel: this.#fuel,
      hash: toHex(stateHash(this.#instance!)),
    };
    if (!this.#log.isAtEnd) this.#log.fail("events follow the end");
    if (end.fuel !== fuel) this.#depart(`uses ${end.fuel} units of fuel instead of ${fuel}`);
    if (end.hash !== hash) this.#depart("ends with another state");
    return end;
  }

  // ---- the instance -------------------------------------------------------------------------------------------------

  #instantiate(): void {
    if (this.#log.kind !== EVENT.BEGIN) this.#log.fail("it does not begin with an instantiation");
    const reader = this.#log.event();
    const code = readCode(reader);
    const [maxMemoryPages, maxTableElements, maxStackBytes, maxHeapBytes] = [0, 0, 0, 0].map(() => {
      return Number(reader.u64BigInt());
    });
    const { observe: _, maxMemoryPages: __, ...engine } = this.#options;
    requirePages(reader, maxMemoryPages, this.#mostPages);
    const limits: Required<InstanceLimits> = { maxMemoryPages, maxTableElements, maxStackBytes, maxHeapBytes };
    const module = NewEngine({ ...engine, features: allFeatures(), deterministic: true, ...this.#codeOptions(code) })
      .compile(this.#log.module).internal;
    if (code.stack === "native" && module.settings.stack === "counted") reader.fail("a native stack for tail calls");
    try {
      const imports = this.#readImports(reader, module);
      instantiate(this.#store, module, imports, limits, { record: this }, undefined, true);
    } catch (error) {
      if (error instanceof RecordingError || error instanceof MalformedError) throw error;
      if (this.#begun === undefined) this.#log.fail(`its instance cannot be made: ${(error as Error).message}`);
    }
    const failure = this.#begun?.error;
    this.#error = failure;
    this.#afterExhaustion(failure);
    this.#expect(failure === undefined ? EVENT.READY : EVENT.THREW, (out) => {
      if (failure !== undefined) this.#values.writeError(out, failure);
    });
  }

  /** The options of code that repeats the recorded code. */
  #codeOptions({ fuel, nans, stack }: RecordedCode): EngineOptions {
    const rule: StackRule = stack === "native" && this.#log.hasExhaustion ? "logged" : stack;
    // Code of the tier auto is replaced while it runs, for which the depth must be counted.
    const { tier } = this.#options;
    return {
      fuel,
      nans,
      stack: rule as "native",
      ...(rule !== "counted" && tier === "auto" ? { tier: "optimizing" } : {}),
    };
  }

  /** @internal */
  begin(instance: unknown, _limits: object, initialize: () => void): void {
    this.#instance = instance as Instance;
    // The rest of BEGIN: the contents of imported memories and tables.
    applyChanges(this.#log.current, this.#instance, this.#values);
    this.#begun = { error: undefined };
    this.#arm();
    try {
      initialize();
    } catch (error) {
      this.#begun = { error };
      throw error;
    }
  }

  /** @internal */
  hostFunction(index: number): BoundaryFunction {
    return (...args) => this.#hostCall(index, args);
  }

  /** @internal */
  exportedFunction(_index: number, call: BoundaryFunction): BoundaryFunction {
    return call;
  }

  /** @internal */
  exhausted(error: Error): void {
    this.#ownExhaustion = error;
  }

  /** @internal */
  isExhaustedAt(path: (most?: number) => readonly number[]): boolean {
    return this.#isExhausted = this.#exhaustion !== undefined && isAt(this.#exhaustion, path);
  }

  /** @internal */
  asynchronousCall(): undefined {
    return undefined;
  }

  /** Objects that replace the recorded imports, by their names. */
  #readImports(reader: ByteReader, module: CompiledModule): Imports {
    const imports: Record<string, Record<string, unknown>> = Object.create(null);
    const made: Record<string, unknown[]> = { func: [], table: [], memory: [], global: [], tag: [] };
    for (const entry of module.valid.imports) {
      const { module: namespace, name, desc: { kind } } = entry;
      const same = made[kind];
      const value = kind === "func"
        ? readFunction(reader, module, entry)
        : this.#readImport(reader, module, kind, same);
      same.push(value);
      if (kind === "func") this.#imports.push({ module: namespace, name });
      (imports[namespace] ??= Object.create(null))[name] = value;
    }
    return imports;
  }

  get #mostPages(): number {
    return this.#options.maxMemoryPages ?? DEFAULT_LIMITS.maxMemoryPages;
  }

  #readImport(
    reader: ByteReader,
    module: CompiledModule,
    kind: keyof typeof READERS,
    same: readonly unknown[],
  ): unknown {
    const index = reader.u32();
    if (index > same.length) reader.fail(`unknown import ${index}`);
    const value = READERS[kind](reader, module, same.length, this.#store, this.#values, this.#mostPages);
    return index < same.length ? same[index] : value;
  }

  // ---- the host -----------------------------------------------------------------------------------------------------

  /** Repeats one action of the host, other than the return from a host call. */
  #step(): void {
    switch (this.#log.kind) {
      case EVENT.CALL:
        return this.#call();
      case EVENT.START:
        return this.#start();
      case EVENT.RESUME:
      case EVENT.REJECT:
        return this.#resume();
      case EVENT.STOPPED:
        return this.#stopped();
      case EVENT.TAKE:
        return this.#take();
      default:
        this.#log.fail(`an unexpected event ${EVENT_NAMES.get(this.#log.kind) ?? this.#log.kind}`);
    }
  }

  #call(): void {
    const reader = this.#log.event();
    const index = this.#readIndex(reader);
    const fuel = reader.u64BigInt();
    const depth = reader.u32();
    const args = this.#values.readAll(reader);
    applyChanges(reader, this.#instance!, this.#values);
    const call = this.#instance!.exportedFunc(index);
    const { results } = this.#typeOf(index);
    this.#calls++;
    this.#run(() => {
      const { thread } = this.#store;
      const outer = this.#cell;
      if (fuel > 0n) this.#cell = fuel - 1n;
      const inner = this.#cell;
      this.#arm();
      try {
        const result = depth === 0 ? call(...args) : thread.withDepth(depth - 1, () => call(...args));
        this.#ended(0, results, result);
      } catch (error) {
        this.#threw(0, error);
      } finally {
        this.#cell = outer - (inner - this.#cell);
      }
    });
  }

  #start(): void {
    const reader = this.#log.event();
    const index = this.#readIndex(reader);
    const fuel = reader.u64BigInt();
    const args = this.#values.readAll(reader);
    applyChanges(reader, this.#instance!, this.#values);
    const number = ++this.#asynchronous;
    this.#calls++;
    if (this.#log.kind === EVENT.STOPPED) return;
    const context: ControlContext = fuel === 0n ? {} : { fuel: fuel - 1n };
    const { results } = this.#typeOf(index);
    this.#run(() => {
      this.#arm();
      const done = (value: unknown) => this.#ended(number, results, value);
      startCall(this.#instance!, index, context, args, done, (error) => this.#threw(number, error), false);
    });
  }

  #resume(): void {
    const isValue = this.#log.kind === EVENT.RESUME;
    const reader = this.#log.event();
    const number = reader.u32();
    const suspended = this.#suspended.get(number);
    if (suspended === undefined) return this.#log.fail(`unknown suspension ${number}`);
    this.#suspended.delete(number);
    applyChanges(reader, this.#instance!, this.#values);
    const values = isValue ? this.#values.readAll(reader) : [];
    const error = isValue ? undefined : this.#values.readError(reader);
    if (this.#log.kind === EVENT.STOPPED) return;
    this.#run(() => {
      this.#arm();
      if (isValue) suspended.suspension.resume(values.length === 1 ? values[0] : values);
      else suspended.suspension.fail(error);
    });
  }

  #take(): void {
    const reader = this.#log.event();
    const instance = this.#instance!;
    applyChanges(reader, instance, this.#values);
    const index = reader.u32();
    const position = reader.u32();
    const value = position === 0 ? globalAt(reader, instance, index) : elementAt(reader, instance, index, position - 1);
    if (this.#values.isNew(value)) this.#values.take(value);
  }

  #stopped(): void {
    const reader = this.#log.event();
    reader.u32();
    const error = this.#values.readError(reader);
    if (this.#depth === 0) this.#keep([], [], error);
  }

  /** Keeps the outcome of a call that no host function made. */
  #keep(results: readonly unknown[], types: readonly number[], error: unknown): void {
    this.#results = results;
    this.#types = types;
    this.#error = error;
  }

  /** Runs a part of a call. */
  #run(action: () => void): void {
    const outer = this.#cell;
    const { i32 } = this.#store.thread.state;
    const depthLeft = i32[DEPTH_LEFT];
    if (!this.#countsUnits) i32[DEPTH_LEFT] = UNCOUNTED_DEPTH;
    this.#depth++;
    try {
      action();
    } finally {
      this.#depth--;
      i32[DEPTH_LEFT] = depthLeft;
      if (this.#depth === 0) this.#fuel += outer - this.#cell;
    }
    if (this.#departure !== undefined) throw this.#departure;
  }

  // ---- the guest ----------------------------------------------------------------------------------------------------

  #hostCall(index: number, args: readonly unknown[]): unknown {
    if (this.#departure !== undefined) throw this.#departure;
    try {
      this.#hostCalls++;
      const { params } = this.#typeOf(index);
      this.#expect(EVENT.HOST, (out) => {
        out.u32(index);
        this.#values.writeAll(out, params, args);
      });
      return this.#log.reading(() => this.#answer(index, args));
    } catch (error) {
      throw error instanceof HostThrow ? error.value : this.#departure = error;
    }
  }

  /** The host's part of a call of import `index`. */
  #answer(index: number, args: readonly unknown[]): unknown {
    for (;;) {
      const { kind } = this.#log;
      if (kind !== EVENT.RETURN && kind !== EVENT.THROW && kind !== EVENT.SUSPEND) {
        this.#step();
        continue;
      }
      const reader = this.#log.event();
      const number = kind === EVENT.SUSPEND ? reader.u32() : 0;
      this.#cell -= applyChanges(reader, this.#instance!, this.#values);
      if (kind === EVENT.SUSPEND) return this.#suspend(number);
      const results = kind === EVENT.RETURN ? this.#values.readAll(reader) : [];
      const error = kind === EVENT.THROW ? this.#values.readError(reader) : undefined;
      if (kind === EVENT.RETURN) this.#observe(index, args, results);
      this.#arm();
      if (kind === EVENT.THROW) throw new HostThrow(error);
      return this.#typeOf(index).results.length === 1 ? results[0] : results;
    }
  }

  #suspend(number: number): Suspension {
    const suspension = new Suspension();
    this.#suspended.set(number, { suspension });
    return suspension;
  }

  #observe(index: number, args: readonly unknown[], results: readonly unknown[]): void {
    const { observe } = this.#options;
    if (observe === undefined) return;
    observe({ ...this.#imports[index], args, results, memory: this.#instance!.memories[0]?.bytes });
  }

  #ended(call: number, types: FuncType["results"], result: unknown): void {
    const results = resultList(types, result);
    this.#atEnd(() => {
      this.#expect(EVENT.DONE, (out) => {
        out.u32(call);
        this.#values.writeAll(out, types, results);
      });
      if (this.#depth === 1) this.#keep(results, types, undefined);
    });
  }

  #threw(call: number, given: unknown): void {
    this.#atEnd(() => {
      const error = this.#interrupted(given);
      this.#afterExhaustion(given);
      if (error === undefined) {
        this.#expect(EVENT.THREW, (out) => {
          out.u32(call);
          this.#values.writeError(out, given);
        });
      } else {
        const reader = this.#log.event();
        if (reader.u32() !== call) this.#log.fail("an interruption of another call");
        reader.u64BigInt();
      }
      if (this.#depth === 1) this.#keep([], [], error ?? given);
    });
  }

  /** Keeps the first error of the comparison with the log: callers of an ended call cannot handle it. */
  #atEnd(compare: () => void): void {
    if (this.#departure !== undefined) return;
    try {
      compare();
    } catch (error) {
      this.#departure = error;
    }
  }

  /**
   * If the guest is interrupted before the host gets control again, takes away the fuel that it will not use, so that
   * it stops there: code polls before it charges for the instructions that follow.
   */
  #arm(): void {
    this.#interruption = undefined;
    this.#armStack();
    if (this.#log.kind !== EVENT.INTERRUPTED) return;
    const reader = this.#log.peek();
    reader.u32();
    const used = reader.u64BigInt();
    this.#interruption = { debt: this.#cell - used };
    this.#cell = used;
  }

  /** If the guest exhausts its stack before the host gets control again, lets it stop at that depth. */
  #armStack(): void {
    this.#isExhausted = false;
    this.#exhaustion = undefined;
    if (this.#log.kind === EVENT.EXHAUSTED) {
      if (!this.#log.hasExhaustion) this.#log.fail("an exhausted stack that its end does not announce");
      this.#exhaustion = readExhaustion(this.#log.peek());
    }
    this.#store.thread.state.i32[DEPTH_STOP] = -(this.#exhaustion?.depth ?? 0);
  }

  /** Consumes the event of an exhausted stack if `error` is its. Departs if the replay itself has too little stack. */
  #afterExhaustion(error: unknown): void {
    const exhaustion = this.#exhaustion;
    this.#exhaustion = undefined;
    if (!ExhaustionError.is(error)) return;
    if (this.#isExhausted) {
      this.#isExhausted = false;
      readExhaustion(this.#log.event());
    } else if (error === this.#ownExhaustion && !this.#countsUnits) {
      this.#depart(
        exhaustion === undefined
          ? "exhausts the stack of the replay, whose code has larger frames: the tier optimizing may repeat it"
          : `exhausts the stack of the replay, but not at the recorded call, at ${exhaustion.depth} activations`,
      );
    }
  }

  /** Whether the code repeats code that counts the depth of calls, so that it exhausts its stack by itself. */
  get #countsUnits(): boolean {
    return this.#instance!.module.settings.stack === "counted";
  }

  /** The interruption in place of the trap that `#arm` has caused. */
  #interrupted(error: unknown): Error | undefined {
    const interruption = this.#interruption;
    this.#interruption = undefined;
    if (interruption === undefined) return undefined;
    this.#cell += interruption.debt;
    if (!TrapError.is(error) || error.code !== "out-of-fuel") return undefined;
    return new TrapError("interrupted", error.frames, (program) => error.coredump(program));
  }

  get #cell(): bigint {
    return this.#store.thread.state.i64[FUEL];
  }

  set #cell(fuel: bigint) {
    this.#store.thread.state.i64[FUEL] = fuel;
  }

  #typeOf(index: number): FuncType {
    return this.#instance!.module.funcType(index);
  }

  #readIndex(reader: ByteReader): number {
    const index = reader.u32();
    return this.#instance!.module.hasEntryThunk(index) ? index : reader.fail(`unknown function ${index}`);
  }

  /** Compares an event of the guest with the log. */
  #expect(kind: number, write: (out: ByteWriter) => void): void {
    const out = new ByteWriter(64);
    out.u8(kind);
    write(out);
    if (this.#log.matches(out.bytes.subarray(0, out.length))) return;
    const recorded = EVENT_NAMES.get(this.#log.kind);
    const done = EVENT_NAMES.get(kind);
    this.#depart(
      recorded === done
        ? `has another ${done} than the recording`
        : `has the event ${done} where the recording has ${recorded ?? "none that is known"}`,
    );
  }

  #depart(how: string): never {
    throw new RecordingError(`The replay departs from the recording: event ${this.#log.count + 1} ${how}`);
  }
}

/** The reference in global `index`. */
function globalAt(reader: ByteReader, { globals, boundary }: Instance, index: number): unknown {
  const { region, offset, type: { type } } = globals[index] ?? reader.fail(`unknown global ${index}`);
  return isRef(type) ? readValue(region, offset, type, boundary) : reader.fail(`global ${index} is not a reference`);
}

/** The reference at `position` in table `index`. */
function elementAt(reader: ByteReader, { tables, boundary }: Instance, index: number, position: number): unknown {
  const table = tables[index] ?? reader.fail(`unknown table ${index}`);
  if (position >= table.length) reader.fail("an element outside of a table");
  return boundary.fromWord(table.get(position), table.type.element);
}

/** Carries a value that a host function throws through the replay's own code. */
class HostThrow {
  readonly value: unknown;
  constructor(value: unknown) {
    this.value = value;
  }
}

/**
 * The function of an imported function: a string builtin if the log says so and the import is one by its names and its
 * type, otherwise a placeholder for a function of the host.
 */
function readFunction(reader: ByteReader, module: CompiledModule, entry: Import): () => void {
  const form = reader.u8();
  if (form === 0) return () => {};
  const { module: namespace, name } = entry;
  const isBuiltin = form === 1 && namespace === STRING_MODULE && Object.hasOwn(STRING_FUNCTIONS, name) &&
    hasBuiltinType(module.valid, entry, name as StringBuiltin);
  if (!isBuiltin) reader.fail(`the import ${JSON.stringify(namespace)} ${JSON.stringify(name)} is not a builtin`);
  return STRING_FUNCTIONS[name as StringBuiltin];
}

/** Refuses a recording whose memories have more pages than the replay allows: a short log can announce any number. */
function requirePages(reader: ByteReader, pages: number, most: number): void {
  if (pages > most) {
    reader.fail(`memories of ${pages} pages, above the limit of ${most}: raise it (maxMemoryPages, --max-memory)`);
  }
}

type ImportReader = (
  reader: ByteReader,
  module: CompiledModule,
  index: number,
  store: Store,
  values: Values,
  mostPages: number,
) => unknown;

/** By kind of import: makes import `index` of that kind. */
const READERS = {
  memory: (reader, module, index, { thread: { host } }, _values, mostPages) => {
    const type = module.valid.memoryTypes[index];
    const pages = reader.u32();
    requirePages(reader, Math.ceil(pages * pageBytes(type) / PAGE_BYTES), mostPages);
    const maxPages = reader.u32();
    const max = type.limits.max === undefined ? undefined : BigInt(Math.max(maxPages, pages));
    const limits = { ...type.limits, min: BigInt(pages), ...(max === undefined ? {} : { max }) };
    const guarded = !module.settings.explicitBounds && isGuardable(type);
    const maxBytes = Math.min(maxPages * pageBytes(type), mostPages * PAGE_BYTES);
    return new Memory(host, { ...type, limits }, { guarded, maxBytes });
  },
  table: (reader, module, index, { thread: { contexts } }) => {
    const type = module.tableTypes[index];
    const length = reader.u32();
    const most = Math.min(reader.u32(), MAX_TABLE_ELEMENTS);
    if (length > most) reader.fail(`a table of ${length} elements`);
    const max = type.limits.max === undefined ? {} : { max: BigInt(Math.max(most, length)) };
    return new Table(contexts, { ...type, limits: { ...type.limits, min: BigInt(length), ...max } }, most);
  },
  global: (reader, module, index, store, values) => {
    const block = store.thread.contexts.allocate(16);
    const global = new Global(module.globalTypes[index], block.region, block.offset, block);
    readGlobalValue(reader, global, store, values);
    store.sweeps.addHostObject(global);
    return global;
  },
  tag: (_reader, module, index, store) => {
    const { canonicalIds, tagTypes, tagTypeIndices } = module.valid;
    return new Tag(closeFuncType(tagTypes[index], canonicalIds), canonicalIds[tagTypeIndices[index]], store);
  },
} as const satisfies Record<string, ImportReader>;
