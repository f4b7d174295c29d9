/**
 * The error classes of the engine, one per stage of the specification's own account of failure: malformed (decoding or
 * parsing), invalid (validation), link (instantiation), trap and exhaustion (execution). Anything else that escapes the
 * engine is a {@linkcode Bug}: a state that valid input cannot reach.
 *
 * Invariant: a message is one line, says what is wrong first, and never contains our own stack.
 */

/**
 * Where in the input an error lies: a byte offset of a binary, or a line and column (both from 1) of a text; or of the source file that a
 * module was made from, when the module says so.
 */
export interface SourcePlace {
  /** The source file, where the module names it. */
  file?: string;
  /** Bytes from the beginning of the binary form. */
  offset?: number;
  /** Line of a text, from 1. */
  line?: number;
  /** Column of that line, from 1. */
  column?: number;
}

/** What every engine error has in common. */
export class WaftError extends Error {
  static {
    this.prototype.name = "WaftError"; // on the prototype: a field per class makes every error slower to make
  }
  /** The place in the module's bytes or text, when one is known. */
  place: SourcePlace;

  /** An error with the one-line `message`. */
  constructor(message: string, place: SourcePlace = {}) {
    super(message);
    this.place = place;
  }

  /** `at offset 0x1f` or `at 3:14`, or the empty string. */
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
    this.prototype.name = "MalformedError";
  }
}

/** The module is well-formed but not valid (specification, chapter 3). */
export class InvalidError extends WaftError {
  static {
    this.prototype.name = "InvalidError";
  }
}

/** The module needs a feature that is switched off or that this build does not have; `feature` is its name. */
export class UnsupportedError extends InvalidError {
  static {
    this.prototype.name = "UnsupportedError";
  }
  /** The feature's name in FEATURE_ROWS. */
  readonly feature: string;

  /** An error about `feature`. */
  constructor(feature: string, message: string, place: SourcePlace = {}) {
    super(message, place);
    this.feature = feature;
  }
}

/** Instantiation failed before any code ran: an import is missing or does not match (specification, 4.7.2). */
export class LinkError extends WaftError {
  static {
    this.prototype.name = "LinkError";
  }
}

/** One frame of wasm code on the stack when a trap happened, innermost first. */
export interface TrapFrame {
  /** Function index in its module. */
  funcIndex: number;
  /** Name from the name section, else an export name, else undefined. */
  funcName?: string;
  /** Module name from the name section, if any. */
  moduleName?: string;
  /** Byte offset of the instruction in the module's binary. */
  offset: number;
  /** The source file, for modules with DWARF line tables. */
  file?: string;
  /** Line and column of the instruction: in that file, or in the text that the module was compiled from. */
  line?: number;
  /** Column of the line, from 1. */
  column?: number;
}

/** Execution trapped; the instance stays usable. The message is the specification's own. */
export class TrapError extends WaftError {
  static {
    this.prototype.name = "TrapError";
  }
  /** The functions of guests that were running, innermost first. */
  readonly frames: readonly TrapFrame[];

  /** A trap with the specification's `message` in `frames`. */
  constructor(message: string, frames: readonly TrapFrame[] = []) {
    super(message, frames.length > 0 ? { offset: frames[0]!.offset } : {});
    this.frames = frames;
  }
}

/** The call stack or another resource ran out (specification: "exhaustion"). */
export class ExhaustionError extends TrapError {
  static {
    this.prototype.name = "ExhaustionError";
  }
}

/** Key of errors that WebAssembly code does not catch: they pass through it to whoever called it, as traps do. */
export const UNCATCHABLE: unique symbol = Symbol("waft.uncatchable");

/** A host function returned a promise in a call that cannot wait for it. */
export class SuspensionError extends TypeError {}

/** A state that valid input cannot reach: a defect of waft itself. */
export class Bug extends Error {
  static {
    this.prototype.name = "Bug";
  }
}
