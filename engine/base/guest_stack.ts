/**
 * The text of `error.stack` for errors that end a guest's call. In: the error's first line, the guest's frames, and the
 * stack that the host made. Out: the guest's frames, then the program's own; the engine's are left out, and a recursion
 * is shown once.
 */

/** A frame of a guest, as far as its text goes. */
interface StackFrame {
  readonly funcIndex: number;
  readonly funcName?: string;
  readonly moduleName?: string;
  readonly offset: number;
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
}

/** The prefix of the engine's files in a host's stack traces. */
const ENGINE = ((url: string) => url.startsWith("file://") ? decodeURIComponent(new URL(url).pathname) : url)(
  new URL("../", import.meta.url).href,
);

/** The longest recursion, in functions, that is recognized. */
const MAX_PERIOD = 8;
/** The fewest rounds of a recursion that are collapsed. */
const MIN_ROUNDS = 3;

/** The longest name in texts that are shown for reading: a stack or a listing repeats the names of a module. */
const MOST_NAME = 200;

/** A name, cut if it is very long. */
export function shortName(name: string): string {
  if (name.length <= MOST_NAME) return name;
  // The cut does not divide a surrogate pair.
  return `${name.slice(0, MOST_NAME).replace(/[\ud800-\udbff]$/, "")}…`;
}

function lineOf({ funcIndex, funcName, moduleName, offset, file, line, column }: StackFrame): string {
  const module = shortName(moduleName ?? "wasm");
  const place = line === undefined
    ? `wasm://${module}:wasm-function[${funcIndex}]:0x${offset.toString(16)}`
    : `${file ?? module}:${line}:${column ?? 1}`;
  return `    at ${shortName(funcName ?? `wasm-function[${funcIndex}]`)} (${place})`;
}

/** The number of times that the `period` functions at `from` repeat. */
function roundsAt(frames: readonly StackFrame[], from: number, period: number): number {
  let k = from + period;
  while (k < frames.length && frames[k].funcIndex === frames[k - period].funcIndex) k++;
  return Math.floor((k - from) / period);
}

/** Lines of the frames; a recursion of a few functions is shown once, with the number of frames left out. */
function collapsed(frames: readonly StackFrame[]): string[] {
  const lines: string[] = [];
  for (let k = 0; k < frames.length;) {
    let [period, rounds] = [1, 1];
    for (let p = 1; p <= MAX_PERIOD && rounds < MIN_ROUNDS; p++) [period, rounds] = [p, roundsAt(frames, k, p)];
    if (rounds < MIN_ROUNDS) [period, rounds] = [1, 1];
    lines.push(...frames.slice(k, k + period).map(lineOf));
    if (rounds > 1) lines.push(`    ... ${(rounds - 1) * period} more frames of this recursion`);
    k += period * rounds;
  }
  return lines;
}

/** Whether a line of a host's stack shows the engine. */
function isOwn(line: string): boolean {
  return line.includes(ENGINE);
}

/** Frames of the engine between a guest and the program that a stack must have room for. */
const OWN_FRAMES = 24;

type Capturing = { captureStackTrace?(holder: object): void; stackTraceLimit?: number };

/** The answer of {@linkcode keepsGetter}, once it is known. */
let hasGetter: boolean | undefined;

/**
 * True if errors have their stack from a function that works after their property `stack` was replaced. This is found
 * out by the first error, not when the module is evaluated: an error makes V8 compile the functions on the stack again,
 * for the positions in their sources, and a bundle is one such function.
 */
function keepsGetter(): boolean {
  return hasGetter ??= Object.getOwnPropertyDescriptor(new Error(), "stack")?.get !== undefined;
}

/**
 * Prepares the creation of an error for {@linkcode defineGuestStack}: the stack that it captures has room for the
 * engine's frames, or there is none, because another one will be captured. Returns the limit of stacks, the argument of
 * {@linkcode limitStacks}, which must follow.
 */
export function prepareStack(): number | undefined {
  const host = Error as Capturing;
  const { stackTraceLimit } = host;
  if (stackTraceLimit !== undefined) host.stackTraceLimit = keepsGetter() ? stackTraceLimit + OWN_FRAMES : 0;
  return stackTraceLimit;
}

/** Gives errors stacks of at most `limit` frames again. */
export function limitStacks(limit: number | undefined): void {
  if (limit !== undefined) (Error as Capturing).stackTraceLimit = limit;
}

/** The stack that a prepared error has captured, or else that of this place. It is not formatted before it is read. */
function nativeOf(error: Error, isPrepared: boolean): { readonly stack?: string } {
  const getter = isPrepared && keepsGetter() ? Object.getOwnPropertyDescriptor(error, "stack")?.get : undefined;
  return getter === undefined ? captureNative() : new OwnStack(error, getter);
}

/** The stack that an error had before its property `stack` was replaced. */
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

/** The stack of the host at this place, with room for the engine's frames. It is not formatted before it is read. */
function captureNative(): { readonly stack?: string } {
  const host = Error as Capturing;
  if (host.captureStackTrace === undefined) return new Error();
  const limit = host.stackTraceLimit;
  const holder = {};
  if (limit !== undefined) host.stackTraceLimit = limit + OWN_FRAMES;
  host.captureStackTrace(holder);
  if (limit !== undefined) host.stackTraceLimit = limit;
  return holder;
}

/** The text of a stack: `header`, the guest's frames, and the lines of `native` that are the program's. */
function guestStack(header: string, frames: readonly StackFrame[], native: string | undefined): string {
  const lines = (native ?? "").split("\n").filter((line) => /^\s+at |@/.test(line) && !isOwn(line));
  const most = (Error as Capturing).stackTraceLimit ?? lines.length;
  return [header, ...collapsed(frames), ...lines.slice(0, most)].join("\n");
}

/** The parts of a stack that has not been read, in a hidden property of its error. */
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

/** The property `stack` of all errors: with functions of its own, each error would have a hidden class of its own. */
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
 * Gives an error a stack that is composed when it is read; a program may set another. `isPrepared`: the error was
 * created between {@linkcode prepareStack} and {@linkcode limitStacks}.
 */
export function defineGuestStack(
  error: Error,
  header: () => string,
  frames: () => readonly StackFrame[],
  isPrepared = false,
): void {
  const parts: StackParts = { header, frames, native: nativeOf(error, isPrepared) };
  Object.defineProperty(error, PARTS, { value: parts, enumerable: false, configurable: true });
  Object.defineProperty(error, "stack", STACK);
}
