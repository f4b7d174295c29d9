/**
 * Recording of one instance. In: its module, and the crossings between its compiled code and JavaScript
 * (runtime/suspension/call_recorder.ts). Out: a log of everything that enters the guest, from which replay.ts repeats
 * the run without the host.
 *
 * At any time either the guest or the host is in control. An event is written at each crossing (events.ts). At each
 * crossing into the guest, it includes everything that the host has changed while it was in control (host_changes.ts).
 *
 * Invariant: the recorded run does not depend on the recording, except that asynchronous calls are not preempted, and
 * that NaNs of the host become canonical.
 */
import { THREAD } from "../abi/context_layout.ts";
import { looksBinary, sourceOf } from "../artifact/find_module.ts";
import { decodeModule } from "../binary/decode.ts";
import { encodeModule } from "../binary/encode.ts";
import type { ByteWriter } from "../base/bytes.ts";
import { toHex } from "../base/hex.ts";
import { takesPromise } from "../runtime/boundary/marshal.ts";
import { ignorePromise, isPromise, isThenable, Suspension, whenSettled } from "../runtime/boundary/suspension.ts";
import type { ControlContext } from "../runtime/suspension/call_limits.ts";
import { fuelUnits } from "../runtime/suspension/fuel_units.ts";
import type { BoundaryFunction, CallRecorder, RecordedCall } from "../runtime/suspension/call_recorder.ts";
import type { Instance } from "../runtime/instance/instance.ts";
import type { InstanceLimits } from "../runtime/instance/instantiate.ts";
import { moduleHash } from "../runtime/snapshot/snapshot.ts";
import { type GuestThread, unexpectedPromise } from "../runtime/thread/guest_thread.ts";
import { parseModule } from "../text/text_format.ts";
import { type FuncType, isRef, V128 } from "../wasm/types.ts";
import { codeBits, EVENT } from "./events.ts";
import { writeExhaustion } from "./exhaustion.ts";
import { HostChanges, stateHash, writeGlobalValue } from "./host_changes.ts";
import { LogWriter, sha256 } from "./log_file.ts";
import { convertResult, convertValue, resultList, Values } from "./values.ts";

const FUEL = THREAD.FUEL >> 3;
const DEPTH_LEFT = THREAD.DEPTH_LEFT >> 2;
/** Fuel from this amount on counts as unlimited (UNLIMITED_FUEL less all that a program can use). */
const MAX_FUEL = 2n ** 61n;
/** Depth from this value on counts as unlimited. */
const MAX_DEPTH = 0x7fffffff;

/** A call in progress. */
interface Frame {
  /** The number of the asynchronous call, from 1 on; 0 for a synchronous one. */
  readonly call: number;
  /** The limits of an asynchronous call. */
  readonly context: ControlContext;
  /** Fuel that calls from host functions of this call have used since the host got control. */
  nested: bigint;
  /** True once the call has ended. */
  isOver: boolean;
}

function newFrame(call = 0, context: ControlContext = {}): Frame {
  return { call, context, nested: 0n, isOver: false };
}

/** The binary form of a module that is given in binary or text form. */
function binaryOf(source: Uint8Array | ArrayBuffer | string): Uint8Array {
  const given = sourceOf(source);
  return typeof given !== "string" && looksBinary(given) ? given.slice() : parseModule(given).bytes;
}

/** The end of a recording. */
export interface RecordingEnd {
  /** The log. */
  readonly log: Uint8Array<ArrayBuffer>;
  /** SHA-256 of memories, globals and the lengths of tables, in hexadecimal digits. */
  readonly hash: string;
  /** The fuel that all calls have used; 0n if the engine does not meter. */
  readonly fuel: bigint;
}

/**
 * Records everything that enters one instance: pass it as `record` to `Module.instantiate`, run the program, and call
 * {@linkcode Recorder.finish} before the instance is closed. The engine must be `deterministic`.
 *
 * @example
 * ```ts
 * import { NewEngine } from "@waft/engine";
 * import { Recorder, replay } from "@waft/engine/recording";
 *
 * const text = `(module (import "env" "now" (func $now (result f64)))
 *   (func (export "time") (result f64) (call $now)))`;
 * const recorder = new Recorder(text);
 * const instance = NewEngine({ deterministic: true }).compile(text)
 *   .instantiate({ record: recorder }, { env: { now: Date.now } });
 * const time = instance.call({}, "time");
 * const { log } = recorder.finish();
 * if (replay(log).results[0] !== time) throw new Error("the replay must return the same time");
 * ```
 */
export class Recorder implements CallRecorder {
  /** @internal */
  readonly isReplay = false;
  readonly #module: Uint8Array;
  readonly #log: LogWriter;
  readonly #values: Values;
  #instance: Instance | undefined;
  #thread!: GuestThread;
  #changes!: HostChanges;
  /** The indices of imports that are functions of the host; the others are builtins for strings. */
  readonly #hostFunctions = new Set<number>();
  #isFinished = false;
  /** True once the segments have run. */
  #hasState = false;
  /** The error because of which the log is incomplete. */
  #failure: unknown;
  /** The last error for an exhausted stack, with the activations at that time. */
  #exhaustion: { readonly error: Error; readonly path: readonly number[] } | undefined;
  #isGuest = false;
  #frame: Frame = newFrame();
  /** The number of calls in progress, suspended ones excluded. */
  #depth = 0;
  #calls = 0;
  #suspensions = 0;
  /** Fuel at the last crossing into the guest, and out of it. */
  #entered = 0n;
  #left = 0n;
  #fuel = 0n;

  /** Records an instance of the module in `source`, which must be the compiled one. Throws MalformedError. */
  constructor(source: Uint8Array | ArrayBuffer | string) {
    this.#module = binaryOf(source);
    this.#log = new LogWriter(this.#module);
    this.#values = new Values(() => this.#instance!);
  }

  /** @internal */
  begin(instance: unknown, limits: object, initialize: () => void): void {
    if (this.#instance !== undefined) throw new TypeError("A recorder records one instance: make another recorder");
    this.#instance = instance as Instance;
    try {
      this.#writeBegin(this.#instance, limits as Required<InstanceLimits>);
    } catch (error) {
      this.#failure = error;
      throw error;
    }
    try {
      initialize();
      this.#log.event(EVENT.READY);
    } catch (error) {
      this.#writeExhaustion(error);
      this.#values.writeError(this.#log.event(EVENT.THREW), error);
      throw error;
    } finally {
      this.#changes.begin();
      this.#hasState = true;
    }
  }

  #writeBegin(instance: Instance, limits: Required<InstanceLimits>): void {
    const { module } = instance;
    if (toHex(moduleHash(module)) !== toHex(sha256(encodeModule(decodeModule(this.#module))))) {
      throw new TypeError("The recorder was made for another module than the one that is instantiated");
    }
    this.#thread = instance.store.thread;
    this.#changes = new HostChanges(instance, this.#values, (value, index, position) => {
      this.#taken(value, index, position);
    });
    const out = this.#log.event(EVENT.BEGIN);
    const { fuel, fuelPrices, nans, stack } = module.settings;
    if (fuelPrices !== "") throw new TypeError("A recording has the default prices of fuel: omit fuelPrices");
    out.u8(codeBits({ fuel, nans, stack: stack === "native" ? stack : "counted" }));
    this.#writeLimits(out, limits);
    this.#writeImports(out, instance);
    this.#changes.writeImports(out);
  }

  /** True once the instance is linked: from then on there is a log. */
  get hasBegun(): boolean {
    return this.#hasState;
  }

  /**
   * Ends the recording and returns the log; the instance runs on without it. Suspended calls are recorded up to their
   * suspension. Throws TypeError if the host has put a function or an object of another instance into a table or
   * global, and Error while a call is running, before the instantiation, after `close`, and when called again.
   */
  finish(): RecordingEnd {
    const instance = this.#instance;
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#isFinished) throw new Error("The recording has ended already");
    if (instance === undefined) throw new Error("The recorder has no instance: pass it as record to instantiate");
    if (this.#depth > 0) throw new Error("The recording cannot end while a call of the instance is running");
    if (instance.closed) {
      throw new Error("The recording cannot end after the instance was closed");
    }
    this.#isFinished = true;
    const hash = stateHash(instance);
    const out = this.#log.event(EVENT.END);
    // The state includes everything that the host did after the last call.
    this.#writeChanges(out);
    if (this.#failure !== undefined) throw this.#failure;
    out.u64BigInt(this.#fuel);
    out.raw(hash);
    this.#changes.end();
    return { log: this.#log.finish(), hash: toHex(hash), fuel: this.#fuel };
  }

  /** @internal */
  hostFunction(index: number, call: BoundaryFunction): BoundaryFunction {
    this.#hostFunctions.add(index);
    return (...args) => {
      if (this.#isFinished || !this.#isGuest) return call(...args);
      return this.#hostCall(index, call, args);
    };
  }

  /** @internal */
  exportedFunction(index: number, call: BoundaryFunction): BoundaryFunction {
    const type = this.#typeOf(index);
    if ([...type.params, ...type.results].includes(V128)) return call;
    return (...args) => {
      if (this.#isFinished) return call(...args);
      return this.#call(index, type, call, this.#converted(type, args));
    };
  }

  /** @internal */
  exhausted(error: Error, path: () => readonly number[]): void {
    if (this.#isFinished || this.#instance!.module.settings.stack !== "native") return;
    const found = path();
    if (found.length > 0) this.#exhaustion = { error, path: found };
  }

  /** @internal */
  isExhaustedAt(): boolean {
    return false;
  }

  /** @internal */
  asynchronousCall(
    index: number,
    context: ControlContext,
    done: (value: unknown) => void,
    failed: (reason: unknown) => void,
  ): RecordedCall | undefined {
    if (this.#isFinished) return undefined;
    const type = this.#typeOf(index);
    const frame = newFrame(++this.#calls, context);
    return {
      run: (args, start) => this.#start(frame, index, this.#converted(type, args), start),
      done: (value) => {
        this.#ended(frame, type, value);
        done(value);
      },
      failed: (reason, wasStopped) => {
        if (wasStopped) this.#stopped(frame, reason);
        else this.#threw(frame, reason);
        failed(reason);
      },
    };
  }

  #typeOf(index: number): FuncType {
    return this.#instance!.module.funcType(index);
  }

  get #cell(): bigint {
    return this.#thread.state.i64[FUEL];
  }

  /** Arguments as values of the parameters' types, so that their conversion runs no code of the program later. */
  #converted({ params }: FuncType, args: readonly unknown[]): unknown[] {
    const converted = params.map((type, k) => convertValue(type, args[k]));
    params.forEach((type, k) => this.#values.check(type, converted[k]));
    return converted;
  }

  #writeLimits(out: ByteWriter, limits: Required<InstanceLimits>): void {
    const { maxMemoryPages, maxTableElements, maxStackBytes, maxHeapBytes } = limits;
    for (const limit of [maxMemoryPages, maxTableElements, maxStackBytes, maxHeapBytes]) {
      out.u64BigInt(BigInt(Math.min(limit, Number.MAX_SAFE_INTEGER)));
    }
  }

  /** Writes the form of each import, in order. The index of the first import with the same object identifies it. */
  #writeImports(out: ByteWriter, instance: Instance): void {
    const next = { func: 0, table: 0, memory: 0, global: 0, tag: 0 };
    const { memories, tables, globals, tags, module: { valid } } = instance;
    for (const { desc: { kind } } of valid.imports) {
      const index = next[kind]++;
      if (kind === "func") out.u8(this.#hostFunctions.has(index) ? 0 : 1);
      else if (kind === "memory") {
        out.u32(memories.indexOf(memories[index]));
        out.u32(memories[index].pages);
        out.u32(memories[index].maxPages);
      } else if (kind === "table") {
        out.u32(tables.indexOf(tables[index]));
        out.u32(tables[index].length);
        out.u32(tables[index].maxElements);
      } else if (kind === "global") {
        out.u32(globals.indexOf(globals[index]));
        writeGlobalValue(out, instance, index, this.#values);
      } else out.u32(tags.indexOf(tags[index]));
    }
  }

  /** Ends the recording but not the run: the host has done something that a recording cannot represent. */
  #abandon(failure: unknown): void {
    this.#failure = failure;
    this.#isFinished = true;
    this.#changes.end();
  }

  #writeHostError(out: ByteWriter, error: unknown): void {
    try {
      this.#values.checkError(error);
    } catch (failure) {
      this.#abandon(failure);
    }
    this.#values.writeError(out, error);
  }

  #writeChanges(out: ByteWriter, fuel = 0n): void {
    try {
      this.#changes.write(out, fuel);
    } catch (error) {
      this.#abandon(error);
    }
  }

  /** The host has read a value from a global or a table: the guest may get it back. */
  #taken(value: unknown, index: number, position?: number): void {
    if (!this.#hasState || this.#isGuest || !this.#values.isNew(value)) return;
    const out = this.#log.event(EVENT.TAKE);
    this.#writeChanges(out);
    this.#changes.begin();
    // The host may have written the value itself.
    if (this.#values.isNew(value)) this.#values.take(value);
    out.u32(index);
    out.u32(position === undefined ? 0 : position + 1);
  }

  /** The host gets control. */
  #leave(): void {
    this.#isGuest = false;
    this.#left = this.#cell;
    this.#changes.begin();
  }

  /** The guest gets control, after the event of the crossing. */
  #enter(frame: Frame): void {
    this.#frame = frame;
    frame.nested = 0n;
    this.#isGuest = true;
    this.#entered = this.#cell;
  }

  /** Runs a part of a call that begins with an event of `kind`, whose fields `write` writes. */
  #run<T>(frame: Frame, kind: number, write: (out: ByteWriter) => void, action: () => T): T {
    const parent = this.#frame;
    const outer = this.#cell;
    const left = this.#left;
    write(this.#log.event(kind));
    this.#enter(frame);
    const { fuel } = frame.context;
    if (fuel !== undefined && fuelUnits(fuel) < this.#entered) this.#entered = fuelUnits(fuel);
    this.#depth++;
    try {
      return action();
    } finally {
      this.#depth--;
      // A call that could not begin leaves the guest in control.
      if (this.#isGuest) this.#leave();
      const used = outer - this.#cell;
      parent.nested += used;
      if (this.#depth === 0) this.#fuel += used;
      this.#frame = parent;
      this.#left = left;
    }
  }

  #call(index: number, type: FuncType, call: BoundaryFunction, args: readonly unknown[]): unknown {
    const frame = newFrame();
    const write = (out: ByteWriter) => {
      const depth = this.#thread.state.i32[DEPTH_LEFT];
      out.u32(index);
      out.u64BigInt(this.#cell < MAX_FUEL ? this.#cell + 1n : 0n);
      out.u32(depth < MAX_DEPTH ? depth + 1 : 0);
      this.#values.writeAll(out, type.params, args);
      this.#writeChanges(out);
    };
    return this.#run(frame, EVENT.CALL, write, () => {
      let result: unknown;
      try {
        result = call(...args);
      } catch (error) {
        this.#threw(frame, error);
        throw error;
      }
      this.#ended(frame, type, result);
      return result;
    });
  }

  #start(frame: Frame, index: number, args: readonly unknown[], start: (args: readonly unknown[]) => void): void {
    const { fuel } = frame.context;
    const write = (out: ByteWriter) => {
      out.u32(index);
      out.u64BigInt(fuel === undefined ? 0n : fuelUnits(fuel) + 1n);
      this.#values.writeAll(out, this.#typeOf(index).params, args);
      this.#writeChanges(out);
    };
    this.#run(frame, EVENT.START, write, () => start(args));
  }

  #ended(frame: Frame, type: FuncType, result: unknown): void {
    frame.isOver = true;
    if (this.#isFinished) return;
    this.#leave();
    const out = this.#log.event(EVENT.DONE);
    out.u32(frame.call);
    this.#values.writeAll(out, type.results, resultList(type.results, result));
  }

  #threw(frame: Frame, error: unknown): void {
    frame.isOver = true;
    if (this.#isFinished) return;
    const poll = this.#thread.pollTrap;
    this.#leave();
    if (poll !== undefined && poll.error === error) {
      this.#thread.pollTrap = undefined;
      const out = this.#log.event(EVENT.INTERRUPTED);
      out.u32(frame.call);
      out.u64BigInt(this.#entered - poll.fuel);
      return;
    }
    this.#writeExhaustion(error);
    const out = this.#log.event(EVENT.THREW);
    out.u32(frame.call);
    this.#values.writeError(out, error);
  }

  /** If `error` is for an exhausted stack, writes the call at which that happened. */
  #writeExhaustion(error: unknown): void {
    const exhaustion = this.#exhaustion;
    if (exhaustion === undefined || exhaustion.error !== error) return;
    this.#exhaustion = undefined;
    writeExhaustion(this.#log.event(EVENT.EXHAUSTED), exhaustion.path);
    this.#log.hasExhaustion = true;
  }

  #stopped(frame: Frame, error: unknown): void {
    frame.isOver = true;
    if (this.#isFinished) return;
    const out = this.#log.event(EVENT.STOPPED);
    out.u32(frame.call);
    this.#values.writeError(out, error);
  }

  #hostCall(index: number, call: BoundaryFunction, args: readonly unknown[]): unknown {
    const type = this.#typeOf(index);
    const frame = this.#frame;
    const out = this.#log.event(EVENT.HOST);
    out.u32(index);
    this.#values.writeAll(out, type.params, args);
    this.#leave();
    let result: unknown;
    try {
      let given = call(...args);
      const early = frame.call > 0 ? Suspension.takeEarly(given) : undefined;
      if (early?.isValue === false) throw early.settled;
      if (early !== undefined) given = early.settled;
      else if (this.#suspends(type, given, index, frame)) return this.#suspend(type, frame, given);
      result = this.#result(type, given);
    } catch (error) {
      this.#back(frame, EVENT.THROW, (event) => this.#writeHostError(event, error));
      throw error;
    }
    this.#back(frame, EVENT.RETURN, (event) => this.#writeResults(event, type, result));
    return result;
  }

  /** The result of a host function as values of its types. Throws before an event is written. */
  #result({ results }: FuncType, given: unknown): unknown {
    const result = convertResult(results, given);
    if (results.some(isRef)) {
      resultList(results, result).forEach((value, k) => this.#values.check(results[k], value));
    }
    return result;
  }

  #writeResults(out: ByteWriter, { results }: FuncType, result: unknown): void {
    this.#values.writeAll(out, results, resultList(results, result));
  }

  /** The fuel that the host has used since it got control from `frame`. */
  #hostFuel(frame: Frame): bigint {
    return this.#left - this.#cell - frame.nested;
  }

  /** Writes the event by which the guest gets control back from a host function. */
  #back(frame: Frame, kind: number, write: (out: ByteWriter) => void): void {
    if (this.#isFinished) return;
    const out = this.#log.event(kind);
    this.#writeChanges(out, this.#hostFuel(frame));
    write(out);
    this.#enter(frame);
  }

  /** Whether the value of a host function suspends the call. Throws for a promise in a synchronous call. */
  #suspends({ results }: FuncType, value: unknown, index: number, frame: Frame): boolean {
    if (typeof value !== "object" || value === null) return false;
    if (!(results.some(isRef) ? isPromise(value) : isThenable(value))) return false;
    if (frame.call > 0) return true;
    if (takesPromise(results)) return false;
    ignorePromise(value);
    throw unexpectedPromise(this.#instance!.hostServices[index].label);
  }

  /** Waits for `held`. Throws, before an event is written, what the program's code throws because of the wait. */
  #suspend(type: FuncType, frame: Frame, held: unknown): Suspension {
    const suspension = new Suspension();
    const number = this.#suspensions;
    whenSettled(
      held,
      (value) => this.#fulfilled(type, frame, number, suspension, value),
      (reason) => this.#rejected(frame, number, suspension, reason),
    );
    this.#suspensions++;
    const out = this.#log.event(EVENT.SUSPEND);
    out.u32(number);
    this.#writeChanges(out, this.#hostFuel(frame));
    this.#changes.begin();
    return suspension;
  }

  /** Continues a suspended guest with the value of its promise. */
  #fulfilled(type: FuncType, frame: Frame, number: number, suspension: Suspension, value: unknown): void {
    if (frame.isOver) return;
    let result: unknown;
    try {
      result = this.#result(type, value);
    } catch (error) {
      return this.#rejected(frame, number, suspension, error);
    }
    this.#resume(frame, EVENT.RESUME, number, (out) => this.#writeResults(out, type, result), () => {
      suspension.resume(result);
    });
  }

  /** Continues a suspended guest with an exception. */
  #rejected(frame: Frame, number: number, suspension: Suspension, reason: unknown): void {
    if (frame.isOver) return;
    this.#resume(frame, EVENT.REJECT, number, (out) => this.#writeHostError(out, reason), () => {
      suspension.fail(reason);
    });
  }

  #resume(
    frame: Frame,
    kind: number,
    number: number,
    write: (out: ByteWriter) => void,
    action: () => void,
  ): void {
    if (this.#isFinished) return action();
    this.#run(frame, kind, (out) => {
      out.u32(number);
      this.#writeChanges(out);
      write(out);
    }, action);
  }
}
