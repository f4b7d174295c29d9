/**
 * Writes what the compiled form of the compiler must know of a module. In: an instance's exports; the environment of a
 * valid module, the context and the registers of its compilation. Out: the same in the instance's memory, and the bits
 * by which its functions are compiled.
 */
import { Bug } from "../base/errors.ts";
import { type CodegenOptions, codegenOptions } from "../codegen/codegen_options.ts";
import { type MachineCode, STUB } from "../codegen/machine_code.ts";
import type { CodegenContext, RegisterFile, Target } from "../codegen/target.ts";
import { type AllocatorOptions, allocatorOptions } from "../regalloc/allocator_options.ts";
import type { OptimizationSet } from "../settings/optimizations.ts";
import type { ModuleDescription } from "../translate/describe_module.ts";
import {
  bitsOf,
  type CompilerExports,
  FREEDOMS,
  HALVES_BIT,
  KNOWN_COLUMNS,
  MAX_DENIALS,
  OPTION_FLAGS,
  RANK_COLUMN,
} from "./compiler_interface.ts";

type Exports<Name extends keyof CompilerExports> = Pick<CompilerExports, Name>;

/** Writes a module, whose functions can be translated afterwards. */
export function writeModule(
  exports: Exports<"memory" | "reserveModule" | "bodiesAddress" | "openModule">,
  { words, bodies }: ModuleDescription,
): void {
  const at = exports.reserveModule(words.length, bodies.length);
  const { buffer } = exports.memory;
  new Int32Array(buffer, at, words.length).set(words);
  new Uint8Array(buffer, exports.bodiesAddress(), bodies.length).set(bodies);
  exports.openModule();
}

/** Writes the registers of a target, and returns the bits of its allocations. */
export function writeRegisters(
  exports: Exports<"setRegisters" | "addRegister" | "addDenial">,
  registers: RegisterFile,
  optimizations: OptimizationSet,
): number {
  const options: AllocatorOptions = allocatorOptions(optimizations, registers.denied);
  if (options.denied.length > MAX_DENIALS) throw new Bug("The target has too many rows of denied registers");
  exports.setRegisters(registers.general, registers.vector);
  for (const r of [...registers.generalOrder, ...registers.vectorOrder]) exports.addRegister(r);
  for (const { functions, isDenied, deniesWhenOn, isForLongValues, general, vector } of options.denied) {
    exports.addDenial(functions, bitsOf([isDenied, deniesWhenOn, isForLongValues]), general, vector);
  }
  return bitsOf(FREEDOMS.map((name) => options[name])) | (registers.halfSlots === true ? HALVES_BIT : 0);
}

/** Begins the code of a module for a processor; `code` has the stubs of its image. */
export function beginCode(
  exports: Exports<"beginModule" | "setShared" | "addSignature" | "setSignatureType">,
  name: Target["name"],
  context: CodegenContext,
  code: MachineCode,
): void {
  const options: CodegenOptions = codegenOptions(context);
  const { memoriesOffset, importsOffset, sharedLengthsOffset, importedFuncs, sharedMemories, signatures } = options;
  exports.beginModule(
    Number(name === "arm64"),
    bitsOf(OPTION_FLAGS.map((flag) => options[flag])),
    ...[memoriesOffset, importsOffset, sharedLengthsOffset, importedFuncs, sharedMemories.length],
    ...[code.functionStart.length, code.stubStart[STUB.CONSTANTS]],
  );
  for (const [memory, shared] of sharedMemories.entries()) if (shared !== 0) exports.setShared(memory);
  for (const [id, { params, results }] of signatures.entries()) {
    exports.addSignature(params.length, results.length);
    for (const [k, ty] of [...params, ...results].entries()) exports.setSignatureType(id, k, ty);
  }
}

/**
 * What an instance knows of the functions that are compiled already. In: the facts in the code of an image, to which
 * other threads may add. Out: the same in the instance's memory.
 */
export class KnownFunctions {
  readonly #exports: Exports<"memory" | "knownColumn">;
  readonly #code: MachineCode;
  /** Addresses of the columns. */
  readonly #at: readonly number[];

  constructor(exports: Exports<"memory" | "knownColumn">, code: MachineCode) {
    const { rank } = code;
    this.#exports = exports;
    this.#code = code;
    this.#at = KNOWN_COLUMNS.map((_, n) => exports.knownColumn(n));
    if (rank !== undefined) {
      new Int32Array(exports.memory.buffer, exports.knownColumn(RANK_COLUMN), rank.length).set(rank);
    }
    this.update();
  }

  /**
   * Writes what the code knows now. Other threads write the last column last, which says that a function is known: it
   * is read first, so that what belongs to a known function is complete.
   */
  update(): void {
    const { buffer } = this.#exports.memory;
    for (let n = KNOWN_COLUMNS.length - 1; n >= 0; n--) {
      const column = this.#code[KNOWN_COLUMNS[n]];
      const at = this.#at[n];
      if (column instanceof Uint8Array) new Uint8Array(buffer, at, column.length).set(column);
      else new Int32Array(buffer, at, column.length).set(column);
    }
  }
}
