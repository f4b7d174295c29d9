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
import type { Kernel } from "./kernel_forms.ts";
import * as layout from "./kernel/layout.ts";
import { featureUses, type KernelOptions, wordsAt, writeModule } from "./module_tables.ts";

/** A body that the baseline tier does not cover: the index of the defined function, and the reason. */
interface Uncovered {
  readonly index: number;
  /** The body or its code exceeds the kernel's memory. Every instruction is covered. */
  readonly reason: "too-large";
}

/**
 * Appends the code of every body that the kernel covers to the image; returns the others. With `note`, compiles one
 * body at a time, and reports its index and the milliseconds. Throws validation errors.
 */
export function compileBodies(
  kernel: Kernel,
  valid: ValidModule,
  context: ContextLayout,
  options: KernelOptions,
  code: MachineCode,
  note?: (index: number, ms: number) => void,
): Uncovered[] {
  const uncovered: Uncovered[] = [];
  const count = valid.funcs.length;
  if (count === 0) return uncovered;
  writeModule(kernel.memory, valid, context, options);
  wordsAt(kernel.memory, layout.STUBS, layout.STUBS_END - layout.STUBS).set(code.stubStart);
  for (let first = 0; first < count;) {
    const base = alignedLength(code);
    wordsAt(kernel.memory, layout.H_BASE, 4)[0] = base;
    const start = note === undefined ? 0 : performance.now();
    const done = kernel.compileBodies(first, note === undefined ? count - first : 1);
    takeOutput(kernel, valid, { first, done, base }, code, uncovered);
    note?.(first, performance.now() - start);
    first += done;
  }
  featureUses(kernel.memory).forEach((offset, feature) => {
    if (offset !== undefined) valid.gate.use(feature, offset, ALL_FEATURE_ROWS[feature - 1].title);
  });
  return uncovered;
}

/** Moves the kernel's output into the image. */
function takeOutput(
  kernel: Kernel,
  valid: ValidModule,
  { first, done, base }: { first: number; done: number; base: number },
  code: MachineCode,
  uncovered: Uncovered[],
): void {
  const words = wordsAt(kernel.memory, layout.RESULTS, done * layout.RESULT_ROW);
  let end = 0;
  for (let k = 0; k < done; k++) {
    const row = (k * layout.RESULT_ROW) >> 2;
    const status = words[row + layout.RESULT_STATUS / 4];
    const index = first + k;
    if (status === layout.STATUS_INVALID) throw invalidBody(valid, index);
    if (status !== layout.STATUS_DONE) {
      if (status !== layout.STATUS_TOO_LARGE) throw new Bug(`The baseline compiler reports status ${status}`);
      uncovered.push({ index, reason: "too-large" });
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

/** Pads the image to the kernel's function alignment (16 bytes); returns the padded length. */
function alignedLength(code: MachineCode): number {
  const FILLER = 0xcc;
  code.reserve(16);
  while (code.length % 16 !== 0) code.bytes[code.length++] = FILLER;
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
