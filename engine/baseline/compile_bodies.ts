/**
 * The baseline tier of one module: runs all of its bodies through the kernel and appends the code to an image. In: a
 * ValidModule whose bodies may not have been validated. Out: code, sites and relocations of the bodies that the kernel
 * covers, and the list of bodies left to the optimizing compiler, with reasons.
 *
 * The kernel reports only that a body is invalid; validateBody produces the error that explains why.
 */
import { now } from "../host/clocks.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { ContextLayout } from "../abi/context_layout.ts";
import { Bug } from "../base/errors.ts";
import { ALL_FEATURE_ROWS } from "../settings/features.ts";
import { validateDefined } from "../validate/module.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { lengthOf } from "../wasm/module.ts";
import { evictTenant, type Kernel, type SecondKernel } from "./kernel_forms.ts";
import * as layout from "./kernel/layout.ts";
import {
  bodyRange,
  copyTables,
  featureUses,
  type KernelOptions,
  startsAt,
  wordsAt,
  writeModule,
} from "./module_tables.ts";

/** A body that the baseline tier does not cover: the index of the defined function, and the reason. */
interface Uncovered {
  readonly index: number;
  /** The body or its code exceeds the kernel's memory, or was left out. Every instruction is covered. */
  readonly reason: "too-large";
}

/** The settings of compileBodies that do not change code. */
interface Progress {
  /** Reports each body's index and compile time in milliseconds; bodies are then compiled one at a time. */
  readonly note?: ((index: number, ms: number) => void) | undefined;
  /** Creates a second kernel, which compiles half of the bodies in another thread. */
  readonly second?: SecondKernel | undefined;
}

/**
 * Minimum size in bytes of the bodies compiled by two kernels: for fewer, starting the thread costs more than it saves.
 */
export const PAIR_BYTES: number = 1 << 17;
/**
 * Size in bytes of the bodies that two kernels compile per round. Small rounds touch less memory for their output.
 */
const ROUND_BYTES = 2 << 20;

/**
 * Appends the code of every body that the kernel covers to the image; returns the others. The code does not depend on
 * whether a second kernel takes part. Throws validation errors.
 */
export function compileBodies(
  kernel: Kernel,
  valid: ValidModule,
  context: ContextLayout,
  options: KernelOptions,
  code: MachineCode,
  progress: Progress = {},
): Uncovered[] {
  if (valid.funcs.length === 0) return [];
  evictTenant(kernel);
  const bytes = writeModule(kernel.memory, valid, context, options);
  wordsAt(kernel.memory, layout.STUBS, layout.STUBS_END - layout.STUBS).set(code.stubStart);
  wordsAt(kernel.memory, layout.H_POLL_DISTANCE, 4)[0] = code.pollDistance;
  const work = new Bodies(valid, code, kernel, bytes, progress);
  work.compile();
  noteFeatureUses(valid, work.kernels);
  return work.uncovered;
}

/** Notes the features that bodies use, as `kernels` have recorded them. */
export function noteFeatureUses(valid: ValidModule, kernels: readonly Kernel[]): void {
  featureUses(kernels.map(({ memory }) => memory)).forEach((offset, feature) => {
    if (offset !== undefined) valid.gate.use(feature, offset, ALL_FEATURE_ROWS[feature - 1].title);
  });
}

/**
 * Bodies that two kernels compile together: the first kernel those before `middle`, the second those from `middle` to
 * before `end`, which may be none.
 */
interface Round {
  readonly first: number;
  readonly middle: number;
  readonly end: number;
}

/** The compilation of all bodies of a module whose tables are in the kernel's memory. */
class Bodies {
  readonly uncovered: Uncovered[] = [];
  readonly #valid: ValidModule;
  readonly #code: MachineCode;
  readonly #kernel: Kernel;
  /** Bytes of the module in the kernel's memory. */
  readonly #bytes: number;
  readonly #progress: Progress;
  #second: Kernel | undefined;

  constructor(valid: ValidModule, code: MachineCode, kernel: Kernel, bytes: number, progress: Progress) {
    this.#valid = valid;
    this.#code = code;
    this.#kernel = kernel;
    this.#bytes = bytes;
    this.#progress = progress;
  }

  compile(): void {
    const count = this.#valid.funcs.length;
    for (let first = 0; first < count;) {
      const round = this.#roundFrom(first);
      if (round === undefined) first += this.#compileRun(first, count);
      else if (round.middle === round.end) first += this.#compileRun(first, round.end);
      else first += this.#compileRound(round) ?? this.#compileRun(first, count);
    }
  }

  get kernels(): Kernel[] {
    return this.#second === undefined ? [this.#kernel] : [this.#kernel, this.#second];
  }

  /** Compiles bodies from `first` to before `end` with one kernel; returns the number of bodies with a result. */
  #compileRun(first: number, end: number): number {
    const kernel = this.#kernel;
    const { note } = this.#progress;
    const base = alignedLength(this.#code);
    setBase(kernel, base);
    const start = note === undefined ? 0 : now();
    const done = kernel.compileBodies(first, note === undefined ? end - first : 1);
    this.#takeOutput(kernel, { first, done, base });
    note?.(first, now() - start);
    return done;
  }

  /** The next round from `first` on; undefined if one kernel is enough, or if there is no second kernel. */
  #roundFrom(first: number): Round | undefined {
    const { note, second } = this.#progress;
    if (note !== undefined || second === undefined) return undefined;
    const { funcs } = this.#valid;
    let bytes = 0;
    let end = first;
    while (end < funcs.length && bytes < ROUND_BYTES) bytes += lengthOf(funcs[end++].body);
    let middle = first;
    for (let half = bytes / 2; half > 0; middle++) half -= lengthOf(funcs[middle].body);
    if (bytes < PAIR_BYTES) return undefined;
    if (middle === end) return { first, middle, end };
    this.#second ??= this.#secondKernel(second);
    return this.#second && { first, middle, end };
  }

  /** A second kernel with the module's tables in its memory. */
  #secondKernel(second: SecondKernel): Kernel | undefined {
    const kernel = second();
    if (kernel === undefined) return undefined;
    kernel.memory.view(layout.MODULE, this.#bytes);
    const [firstBody] = bodyRange(this.#kernel.memory, 0, 1);
    copyTables(this.#kernel.memory, kernel.memory, firstBody);
    return kernel;
  }

  /** Compiles a round; returns the number of bodies with a result, or undefined if no thread can be started. */
  #compileRound({ first, middle, end }: Round): number | undefined {
    const kernel = this.#kernel;
    const second = this.#second!;
    copyRange(kernel, second, ...bodyRange(kernel.memory, middle, end));
    const wait = startThread(() => second.startBodies?.(middle, end - middle));
    if (wait === undefined) return undefined;
    let done = 0;
    let doneBeside = 0;
    try {
      done = kernel.writeBodies(first, middle - first);
    } finally {
      doneBeside = wait();
    }
    const base = alignedLength(this.#code);
    const next = base + aligned(codeEnd(kernel, done) ?? 0);
    setBase(kernel, base);
    kernel.placeBodies(first, done);
    // If the first kernel's output is full before the end of its half, the next run starts there, and the second half
    // is discarded.
    if (done < middle - first) doneBeside = 0;
    setBase(second, next);
    second.placeBodies(middle, doneBeside);
    this.#exchangeStarts(middle, doneBeside);
    kernel.linkBodies();
    this.#takeOutput(kernel, { first, done, base });
    if (doneBeside === 0) return done;
    second.linkBodies();
    alignedLength(this.#code);
    this.#takeOutput(second, { first: middle, done: doneBeside, base: next });
    return done + doneBeside;
  }

  /**
   * Gives each kernel the code offsets of the other's bodies; the second has just placed `done` bodies from `middle`
   * on.
   */
  #exchangeStarts(middle: number, done: number): void {
    const count = this.#valid.funcs.length;
    const ours = startsAt(this.#kernel.memory, count);
    const theirs = startsAt(this.#second!.memory, count);
    ours.set(theirs.subarray(middle, middle + done), middle);
    theirs.set(ours);
  }

  /** Copies a kernel's output for `done` bodies into the image. Throws the validation error of an invalid body. */
  #takeOutput(kernel: Kernel, { first, done, base }: { first: number; done: number; base: number }): void {
    const code = this.#code;
    const column = (from: number) => wordsAt(kernel.memory, from, done * 4);
    const statuses = column(layout.RESULT_STATUSES);
    if (statuses.includes(layout.STATUS_INVALID) || statuses.includes(layout.STATUS_TOO_LARGE)) {
      this.#takeStatuses(statuses, first);
    }
    const end = (codeEnd(kernel, done) ?? base) - base;
    code.functionStart.set(column(layout.RESULT_STARTS), first);
    code.functionEnd.set(column(layout.RESULT_ENDS), first);
    code.functionFrame.set(column(layout.RESULT_FRAMES), first);
    code.reserve(end);
    code.bytes.set(kernel.memory.view(layout.CODE, end), base);
    code.length = base + end;
    takeSites(kernel, code);
  }

  /** Notes the bodies that are not covered. Throws the validation error of an invalid body. */
  #takeStatuses(statuses: Int32Array, first: number): void {
    statuses.forEach((status, k) => {
      if (status === layout.STATUS_INVALID) throw invalidBody(this.#valid, first + k);
      if (status === layout.STATUS_TOO_LARGE) this.uncovered.push({ index: first + k, reason: "too-large" });
    });
  }
}

/** Copies the module's bytes from address `from` to before `end` from one kernel's memory to another's. */
function copyRange(source: Kernel, target: Kernel, from: number, end: number): void {
  const range = ({ memory }: Kernel) => memory.view(layout.MODULE, end - layout.MODULE).subarray(from - layout.MODULE);
  range(target).set(range(source));
}

/** The result of `start`, which starts a kernel in a thread; undefined if the system cannot create one. */
export function startThread(start: () => (() => number) | undefined): (() => number) | undefined {
  try {
    return start();
  } catch {
    return undefined;
  }
}

function setBase(kernel: Kernel, base: number): void {
  wordsAt(kernel.memory, layout.H_BASE, 4)[0] = base;
}

/**
 * The end of the code of the kernel's first `done` results, in its output or, once placed, in the image; undefined if
 * none has code.
 */
function codeEnd(kernel: Kernel, done: number): number | undefined {
  return wordsAt(kernel.memory, layout.RESULT_ENDS, done * 4).findLast((end) => end >= 0);
}

/** The kernel's function alignment. */
const ALIGNMENT = 16;

function aligned(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

/** Pads the image to the kernel's function alignment; returns the padded length. */
function alignedLength(code: MachineCode): number {
  const FILLER = 0xcc;
  code.reserve(ALIGNMENT);
  while (code.length % ALIGNMENT !== 0) code.bytes[code.length++] = FILLER;
  return code.length;
}

function takeSites(kernel: Kernel, code: MachineCode): void {
  const { memory } = kernel;
  const rows = (from: number, end: number) => wordsAt(memory, from, end - from);
  code.appendSites(rows(layout.CALLS, kernel.callsEnd()), rows(layout.TRAPS, kernel.trapsEnd()));
  const words = rows(layout.RELOCATIONS, kernel.relocationsEnd());
  for (let at = 0; at < words.length; at += 3) code.addReloc(words[at], words[at + 1], words[at + 2]);
}

/** The validation error of an invalid body; a Bug if validateBody accepts it. */
export function invalidBody(valid: ValidModule, index: number): Error {
  validateDefined(valid, index);
  return new Bug(`The baseline compiler rejects function ${valid.importedFuncCount + index}, which is valid`);
}
