/**
 * The baseline tier of one module: runs all of its bodies through the kernel and appends the code to an image. In: a
 * ValidModule whose bodies may not have been validated. Out: code, sites and relocations of the bodies that the kernel
 * covers, and the list of bodies left to the optimizing compiler, with reasons.
 *
 * The kernel reports only that a body is invalid; validateBody produces the error that explains why.
 */
import type { MachineCode } from "../codegen/machine_code.ts";
import type { ContextLayout } from "../abi/context_layout.ts";
import { Bug } from "../errors.ts";
import { ALL_FEATURE_ROWS } from "../features.ts";
import { BODY_RULES } from "../validate/late_rules.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { lengthOf } from "../wasm/module.ts";
import type { Kernel, SecondKernel } from "./kernel_forms.ts";
import * as layout from "./kernel/layout.ts";
import { bodyRange, featureUses, type KernelOptions, startsAt, wordsAt, writeModule } from "./module_tables.ts";

/** A body that the baseline tier does not cover: the index of the defined function, and the reason. */
interface Uncovered {
  readonly index: number;
  /** The body or its code exceeds the kernel's memory. Every instruction is covered. */
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
const PAIR_BYTES = 1 << 17;
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
  const bytes = writeModule(kernel.memory, valid, context, options);
  wordsAt(kernel.memory, layout.STUBS, layout.STUBS_END - layout.STUBS).set(code.stubStart);
  wordsAt(kernel.memory, layout.H_POLL_DISTANCE, 4)[0] = code.storage?.pollDistance ?? 0;
  const work = new Bodies(valid, code, kernel, bytes, progress);
  work.compile();
  work.featureUses().forEach((offset, feature) => {
    if (offset !== undefined) valid.gate.use(feature, offset, ALL_FEATURE_ROWS[feature - 1].title);
  });
  return work.uncovered;
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

  /** The smallest offset at which each feature is used. */
  featureUses(): (number | undefined)[] {
    const { memory } = this.#kernel;
    return featureUses(this.#second === undefined ? [memory] : [memory, this.#second.memory]);
  }

  /** Compiles bodies from `first` to before `end` with one kernel; returns the number of bodies with a result. */
  #compileRun(first: number, end: number): number {
    const kernel = this.#kernel;
    const { note } = this.#progress;
    const base = alignedLength(this.#code);
    setBase(kernel, base);
    const start = note === undefined ? 0 : performance.now();
    const done = kernel.compileBodies(first, note === undefined ? end - first : 1);
    this.#takeOutput(kernel, { first, done, base });
    note?.(first, performance.now() - start);
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
    kernel.memory.view(0, layout.MOVES).set(this.#kernel.memory.view(0, layout.MOVES));
    const [firstBody] = bodyRange(this.#kernel.memory, 0, 1);
    copyRange(this.#kernel, kernel, layout.MODULE, firstBody);
    return kernel;
  }

  /** Compiles a round; returns the number of bodies with a result, or undefined if no thread can be started. */
  #compileRound({ first, middle, end }: Round): number | undefined {
    const kernel = this.#kernel;
    const second = this.#second!;
    copyRange(kernel, second, ...bodyRange(kernel.memory, middle, end));
    const wait = startBodies(second, middle, end - middle);
    if (wait === undefined) return undefined;
    let done = 0;
    let doneBeside = 0;
    try {
      done = kernel.writeBodies(first, middle - first);
    } finally {
      doneBeside = wait();
    }
    const base = alignedLength(this.#code);
    const next = base + aligned(codeEnd(kernel, done));
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
    const words = wordsAt(kernel.memory, layout.RESULTS, done * layout.RESULT_ROW);
    let end = 0;
    for (let k = 0; k < done; k++) {
      const row = (k * layout.RESULT_ROW) >> 2;
      const status = words[row + layout.RESULT_STATUS / 4];
      const index = first + k;
      if (status === layout.STATUS_INVALID) throw invalidBody(this.#valid, index);
      if (status !== layout.STATUS_DONE) {
        if (status !== layout.STATUS_TOO_LARGE) throw new Bug(`The baseline compiler reports status ${status}`);
        this.uncovered.push({ index, reason: "too-large" });
        continue;
      }
      end = words[row + layout.RESULT_END / 4];
      code.functionStart[index] = base + words[row + layout.RESULT_START / 4];
      code.functionEnd[index] = base + end;
      code.functionFrame[index] = words[row + layout.RESULT_FRAME / 4];
    }
    code.reserve(end);
    code.bytes.set(kernel.memory.view(layout.CODE, end), base);
    code.length = base + end;
    takeSites(kernel, code);
  }
}

/** Copies the module's bytes from address `from` to before `end` from one kernel's memory to another's. */
function copyRange(source: Kernel, target: Kernel, from: number, end: number): void {
  const range = ({ memory }: Kernel) => memory.view(layout.MODULE, end - layout.MODULE).subarray(from - layout.MODULE);
  range(target).set(range(source));
}

/** Starts `writeBodies` in a thread; undefined if the system cannot create one. */
function startBodies(kernel: Kernel, first: number, count: number): (() => number) | undefined {
  try {
    return kernel.startBodies?.(first, count);
  } catch {
    return undefined;
  }
}

function setBase(kernel: Kernel, base: number): void {
  wordsAt(kernel.memory, layout.H_BASE, 4)[0] = base;
}

/** Size in bytes of the code of the kernel's first `done` results. */
function codeEnd(kernel: Kernel, done: number): number {
  const words = wordsAt(kernel.memory, layout.RESULTS, done * layout.RESULT_ROW);
  for (let row = (done - 1) * layout.RESULT_ROW / 4; row >= 0; row -= layout.RESULT_ROW / 4) {
    if (words[row + layout.RESULT_STATUS / 4] === layout.STATUS_DONE) return words[row + layout.RESULT_END / 4];
  }
  return 0;
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
function invalidBody(valid: ValidModule, index: number): Error {
  BODY_RULES.get().validateBody(valid, valid.importedFuncCount + index, null);
  return new Bug(`The baseline compiler rejects function ${valid.importedFuncCount + index}, which is valid`);
}
