/**
 * The error classes of the engine, one per stage of failure in the specification: malformed (decoding or parsing),
 * invalid (validation), link (instantiation), trap and exhaustion (execution). Any other error that escapes the engine
 * is a {@linkcode Bug}: a state that valid input cannot reach.
 *
 * Invariant: a message is one line, begins with the fault, and never contains a stack trace of the engine.
 */
import { nameErrors } from "./error_names.ts";
import { defineGuestStack, limitStacks, prepareStack } from "./guest_stack.ts";
import { trapName } from "./traps.ts";

/**
 * The place of an error in the input: a byte offset in a binary form, a line and column of a text, or of the source
 * file from which the module was compiled, if its debug information names it.
 */
export interface SourcePlace {
  /** The source file, if the module names it. */
  file?: string;
  /** Byte offset from the start of the binary form. */
  offset?: number;
  /** Line, counted from 1. */
  line?: number;
  /** Column of that line, counted from 1. */
  column?: number;
}

/** The base class of the engine's errors. */
export class WaftError extends Error {
  static {
    nameErrors(this.prototype, "WaftError");
  }
  /** The place in the module's bytes or text; empty if unknown. */
  place: SourcePlace;
  readonly #isWaftError = true;

  /**
   * Whether `value` is such an error. Unlike `instanceof`, it runs no code of the program.
   *
   * @internal
   */
  static is(value: unknown): value is WaftError {
    return typeof value === "object" && value !== null && #isWaftError in value;
  }

  /** Creates an error with the one-line `message`. */
  constructor(message: string, place: SourcePlace = {}) {
    super(message);
    this.place = place;
  }

  /** The place as text: `at 3:14`, `at offset 0x1f`, or the empty string. */
  get where(): string {
    const { offset, line, column } = this.place;
    if (line !== undefined) return `at ${line}:${column ?? 1}`;
    if (offset !== undefined) return `at offset 0x${offset.toString(16)}`;
    return "";
  }
}

/** The bytes or the text are not a module (specification, chapters 5 and 6). */
export class MalformedError extends WaftError {
  static {
    nameErrors(this.prototype, "MalformedError");
  }
}

/** The module is well-formed, but not valid (specification, chapter 3). */
export class InvalidError extends WaftError {
  static {
    nameErrors(this.prototype, "InvalidError");
  }
}

/** The module needs a feature that is disabled or that this build does not support. */
export class UnsupportedError extends InvalidError {
  static {
    nameErrors(this.prototype, "UnsupportedError");
  }
  /** The feature's name in FEATURE_ROWS. */
  readonly feature: string;

  /** Creates an error about `feature`. */
  constructor(feature: string, message: string, place: SourcePlace = {}) {
    super(message, place);
    this.feature = feature;
  }
}

/**
 * Instantiation failed before any code ran: an import is missing or has an incompatible type (specification, 4.7.2).
 */
export class LinkError extends WaftError {
  static {
    nameErrors(this.prototype, "LinkError");
  }
  /** The missing imports of a component, with their types; empty for other errors. */
  readonly missing: readonly string[];

  /** Creates an error about imports, of which `missing` are missing. */
  constructor(message: string, place: SourcePlace = {}, missing: readonly string[] = []) {
    super(message, place);
    this.missing = missing;
  }
}

/**
 * The verifier could not prove that a function's machine code stays in its sandbox (EngineOptions.verify); no code of
 * the module was placed in memory.
 */
export class UnprovenCodeError extends WaftError {
  static {
    nameErrors(this.prototype, "UnprovenCodeError");
  }
  /** The function's index in its module, imports included; −1 for the stubs that all functions share. */
  readonly functionIndex: number;
  /** Bytes from the start of the function's machine code to the first instruction that is not proven. */
  readonly codeOffset: number;
  /** The property that is not proven, in words. */
  readonly reason: string;

  /** Creates an error about a function. */
  constructor(message: string, functionIndex: number, codeOffset: number, reason: string) {
    super(message);
    this.functionIndex = functionIndex;
    this.codeOffset = codeOffset;
    this.reason = reason;
  }
}

/** A frame of guest code on the stack at a trap. */
export interface TrapFrame {
  /** The function index in its module. */
  funcIndex: number;
  /** The function's name from the name section, otherwise the name of an export; absent if it has neither. */
  funcName?: string;
  /** The module's name from the name section, if it has one. */
  moduleName?: string;
  /** Byte offset of the instruction in the module's binary form. */
  offset: number;
  /** The source file, for modules with DWARF line tables or a source map. */
  file?: string;
  /** Line of the instruction, counted from 1: in the source file, or in the text from which the module was compiled. */
  line?: number;
  /** Column of that line, counted from 1. */
  column?: number;
}

/**
 * Execution trapped. The instance remains usable. The message is the one of the specification's tests; `stack` has the
 * guest's frames before those of the program.
 */
export class TrapError extends WaftError {
  static {
    nameErrors(this.prototype, "TrapError");
  }
  readonly #dump: ((program: string) => Uint8Array<ArrayBuffer>) | undefined;
  /** The frames of guest code at the trap, innermost first. */
  readonly frames: readonly TrapFrame[];
  /** Details of the trap, if known: the limit that a call has reached, or the address of an access. */
  detail: string | undefined;
  /**
   * The address of an out-of-bounds access to memory, and the memory's size in bytes, where both are known.
   */
  access: { readonly address: number; readonly bytes: number } | undefined;

  /**
   * Whether `value` is a trap, as {@linkcode WaftError.is}.
   *
   * @internal
   */
  static override is(value: unknown): value is TrapError {
    return typeof value === "object" && value !== null && #dump in value;
  }

  /**
   * Creates a trap with the specification's `message` and the given frames; `dump` makes its core dump for a program of
   * the given name.
   */
  constructor(
    message: string,
    frames: readonly TrapFrame[] = [],
    dump?: (program: string) => Uint8Array<ArrayBuffer>,
  ) {
    const limit = prepareStack();
    super(message, frames.length > 0 ? { offset: frames[0].offset } : {});
    limitStacks(limit);
    this.frames = frames;
    this.#dump = dump;
    defineGuestStack(this, () => `${this.name}: ${describeTrap(this)}`, () => frames, true);
  }

  /**
   * The name of the trap, such as `integer-divide-by-zero` or `memory-out-of-bounds`; see the table in
   * docs/embedding.md.
   */
  get code(): string {
    return trapName(this.message);
  }

  /**
   * The core dump of the trap, for debuggers that read the tool conventions' format, such as wasmgdb: the guest's
   * stack, and the memories and globals of the instance that trapped, as they are now. Call it before the instance runs
   * again. Values of locals are not in it, nor is a stack in modules loaded from artifacts exact to the instruction.
   *
   * `name` is the name of the program in the dump. Throws an Error for a trap that happened in no instance, such as one
   * that a host function made, or an interruption of a call that waits for the host, and a RangeError for memories that
   * hold more than one buffer can.
   */
  coredump(name = ""): Uint8Array<ArrayBuffer> {
    if (this.#dump === undefined) throw new Error("The trap has no core dump: it did not happen in an instance");
    return this.#dump(name);
  }
}

/** The code of an error of the system or of the JavaScript runtime, such as "ENOENT"; undefined if it has none. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** The message of a trap with its detail. */
export function describeTrap({ message, detail }: { message: string; detail?: string | undefined }): string {
  return detail === undefined ? message : `${message} (${detail})`;
}

/** The call stack or another resource is exhausted (specification: "exhaustion"). */
export class ExhaustionError extends TrapError {
  static {
    nameErrors(this.prototype, "ExhaustionError");
  }
  readonly #isExhaustion = true;

  /**
   * Whether `value` is such a trap, as {@linkcode WaftError.is}.
   *
   * @internal
   */
  static override is(value: unknown): value is ExhaustionError {
    return typeof value === "object" && value !== null && #isExhaustion in value;
  }
}

/** Errors that WebAssembly code cannot catch. No property shows it, and a frozen error can be one. */
const UNCATCHABLE = new WeakSet<object>();

/** Marks an error that WebAssembly code cannot catch: like traps, it propagates to the caller in JavaScript. */
export function markUncatchable<E extends Error>(error: E): E {
  UNCATCHABLE.add(error);
  return error;
}

/** Whether `value` is marked as an error that WebAssembly code cannot catch. */
export function isUncatchable(value: unknown): boolean {
  return typeof value === "object" && value !== null && UNCATCHABLE.has(value);
}

/** A host function returned a promise in a call that cannot be suspended. */
export class SuspensionError extends TypeError {
  readonly #isSuspensionError = true;

  /** Whether `value` is such an error, as {@linkcode WaftError.is}. */
  static is(value: unknown): value is SuspensionError {
    return typeof value === "object" && value !== null && #isSuspensionError in value;
  }
}

/** A state that valid input cannot reach: a defect of the engine. */
export class Bug extends Error {
  static {
    nameErrors(this.prototype, "Bug");
  }
  readonly #isBug = true;

  /**
   * Whether `value` is such an error, as {@linkcode WaftError.is}.
   *
   * @internal
   */
  static is(value: unknown): value is Bug {
    return typeof value === "object" && value !== null && #isBug in value;
  }
}
