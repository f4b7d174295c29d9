/**
 * The text of `error.stack` for errors that end a guest's call. In: the error's first line, the guest's frames, and the
 * stack that the host captured. Out: the guest's frames, followed by the frames of the program. Frames of the engine
 * are omitted, and a recursion is shown once.
 */
import { demangle } from "./demangle.ts";

/** A frame of a recursion. */
interface FunctionFrame {
  readonly funcIndex: number;
}

/** The parts of a guest's frame that appear in the text. */
interface StackFrame extends FunctionFrame {
  readonly funcName?: string;
  readonly moduleName?: string;
  readonly offset: number;
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
}

/** The prefix of the paths of the engine's files in a host's stack traces. */
function engineFolder(): string {
  const url = new URL("../", import.meta.url);
  return url.protocol === "file:" ? decodeURIComponent(url.pathname) : url.href;
}

/** The longest recursion, in functions, that is recognized. */
const MAX_PERIOD = 8;
/** The minimum number of rounds of a recursion that is collapsed. */
const MIN_ROUNDS = 3;

/** Maximum length of a name in stacks and listings, which repeat the names of a module, in UTF-16 units. */
const MAX_NAME = 200;

/** A name, truncated to MAX_NAME. */
export function shortName(name: string): string {
  if (name.length <= MAX_NAME) return name;
  // The cut does not divide a surrogate pair.
  return `${name.slice(0, MAX_NAME).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** The name of a function for people: without the mangling of its language, and truncated. */
export function displayName(name: string): string {
  return shortName(demangle(name));
}

/** The name of a function for reports that repeat it: a symbol that {@linkcode displayName} knows, or truncated. */
export function reportedName(name: string): string {
  return demangle(name) === name ? shortName(name) : name;
}

function lineOf({ funcIndex, funcName, moduleName, offset, file, line, column }: StackFrame): string {
  const module = shortName(moduleName ?? "wasm");
  const place = line === undefined
    ? `wasm://${module}:wasm-function[${funcIndex}]:0x${offset.toString(16)}`
    : `${file ?? module}:${line}:${column ?? 1}`;
  return `    at ${displayName(funcName ?? `wasm-function[${funcIndex}]`)} (${place})`;
}

/** The number of times that the `period` functions at `from` repeat. */
function roundsAt(frames: readonly FunctionFrame[], from: number, period: number): number {
  let k = from + period;
  while (k < frames.length && frames[k].funcIndex === frames[k - period].funcIndex) k++;
  return Math.floor((k - from) / period);
}

/** Lines of the frames; a recursion of a few functions is shown once, with the number of omitted frames. */
export function collapseRecursion<F extends FunctionFrame>(
  frames: readonly F[],
  lineOf: (frame: F) => string,
): string[] {
  const lines: string[] = [];
  for (let k = 0; k < frames.length;) {
    let [period, rounds] = [1, 1];
    for (let p = 1; p <= MAX_PERIOD && rounds < MIN_ROUNDS; p++) [period, rounds] = [p, roundsAt(frames, k, p)];
    if (rounds < MIN_ROUNDS) [period, rounds] = [1, 1];
    lines.push(...frames.slice(k, k + period).map((frame) => lineOf(frame)));
    if (rounds > 1) lines.push(`    ... ${(rounds - 1) * period} more frames of this recursion`);
    k += period * rounds;
  }
  return lines;
}

/** The lines of a host's stack that are frames of the program. */
function programLines(native: unknown): string[] {
  if (typeof native !== "string") return []; // as Error.prepareStackTrace of the program has made it
  const engine = engineFolder();
  return native.split("\n").filter((line) => /^\s+at |@/.test(line) && !line.includes(engine));
}

/**
 * Maximum number of frames of the engine between guest and program, by which the limit of captured stacks is raised.
 */
const OWN_FRAMES = 24;

type Capturing = { captureStackTrace?(holder: object): void; stackTraceLimit?: number };

/** The result of {@linkcode keepsGetter}, once it is known. */
let hasGetter: boolean | undefined;

/**
 * Whether the property `stack` of errors is an accessor whose getter still works after the property is replaced. This
 * is determined at the first error, not when the module is evaluated: creating an error makes V8 recompile the
 * functions on the stack to find their source positions, and a bundle is one large function.
 */
function keepsGetter(): boolean {
  return hasGetter ??= Object.getOwnPropertyDescriptor(new Error(), "stack")?.get !== undefined;
}

/**
 * Prepares the creation of an error for {@linkcode defineGuestStack}: raises the limit of stack frames to make room for
 * the engine's frames, or sets it to 0 if another stack will be captured. Returns the previous limit, which the caller
 * must pass to {@linkcode limitStacks} after the creation.
 */
export function prepareStack(): number | undefined {
  const host = Error as Capturing;
  const { stackTraceLimit } = host;
  if (stackTraceLimit !== undefined) limitStacks(keepsGetter() ? stackTraceLimit + OWN_FRAMES : 0);
  return stackTraceLimit;
}

/** Sets or restores the limit of stack frames; a frozen Error keeps its own. */
export function limitStacks(limit: number | undefined): void {
  if (limit !== undefined) Reflect.set(Error, "stackTraceLimit", limit);
}

/** The stack that a prepared error has captured, otherwise the current stack. It is formatted when it is read. */
function nativeOf(error: Error, isPrepared: boolean): { readonly stack?: string } {
  const getter = isPrepared && keepsGetter() ? Object.getOwnPropertyDescriptor(error, "stack")?.get : undefined;
  return getter === undefined ? captureNative() : new OwnStack(error, getter);
}

/** The stack of an error whose property `stack` has been replaced, by the original getter. */
class OwnStack {
  readonly #error: Error;
  readonly #getter: () => string;

  constructor(error: Error, getter: () => string) {
    this.#error = error;
    this.#getter = getter;
  }

  get stack(): string {
    return this.#getter.call(this.#error);
  }
}

/** The current stack of the host, with room for the engine's frames. It is formatted when it is read. */
function captureNative(): { readonly stack?: string } {
  const host = Error as Capturing;
  if (host.captureStackTrace === undefined) return new Error();
  const limit = host.stackTraceLimit;
  const holder = {};
  if (limit !== undefined) limitStacks(limit + OWN_FRAMES);
  host.captureStackTrace(holder);
  limitStacks(limit);
  return holder;
}

/** The text of a stack: `header`, the guest's frames, and the lines of `native` that are the program's. */
function guestStack(header: string, frames: readonly StackFrame[], native: unknown): string {
  const lines = programLines(native);
  const most = (Error as Capturing).stackTraceLimit ?? lines.length;
  return [header, ...collapseRecursion(frames, lineOf), ...lines.slice(0, most)].join("\n");
}

/** Property key of the parts from which the stack of an error is composed when it is first read. */
const PARTS: unique symbol = Symbol("waft.stack");

interface StackParts {
  readonly header: () => string;
  readonly frames: () => readonly StackFrame[];
  readonly native: { readonly stack?: string };
}

type WithParts = Error & { readonly [PARTS]?: StackParts };

function setStack(error: object, value: string): void {
  Object.defineProperty(error, "stack", { value, writable: true, enumerable: false, configurable: true });
}

/**
 * The property `stack` of all errors. Its functions are shared, so that all errors have the same hidden class in V8.
 */
const STACK: PropertyDescriptor & ThisType<WithParts> = {
  get() {
    const parts = this[PARTS];
    if (parts === undefined) return undefined;
    const stack = guestStack(parts.header(), parts.frames(), parts.native.stack);
    setStack(this, stack);
    return stack;
  },
  set(value: string) {
    setStack(this, value);
  },
  enumerable: false,
  configurable: true,
};

/**
 * Gives an error a stack that is composed when it is first read and that programs may assign. `isPrepared`: the error
 * was created between {@linkcode prepareStack} and {@linkcode limitStacks}.
 */
export function defineGuestStack(
  error: Error,
  header: () => string,
  frames: () => readonly StackFrame[],
  isPrepared = false,
): void {
  const parts: StackParts = { header, frames, native: nativeOf(error, isPrepared) };
  // Both are refused by a frozen exception of the program, which keeps its own stack.
  Reflect.defineProperty(error, PARTS, { value: parts, enumerable: false, configurable: true });
  Reflect.defineProperty(error, "stack", STACK);
}
