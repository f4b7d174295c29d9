/**
 * Selection and emission as WebAssembly, from the host. In: an instance of the module (backend_entry.ts), and the
 * context of a compilation. Out: the code of functions, compared with that which the host made.
 */
import { type CodegenOptions, codegenOptions } from "../../../engine/codegen/codegen_options.ts";
import { type MachineCode, STUB } from "../../../engine/codegen/machine_code.ts";
import type { CodegenContext, Target } from "../../../engine/codegen/target.ts";
import type { IrFunction } from "../../../engine/ir/function.ts";
import { COUNT_FIELDS, OPTION_FLAGS } from "./backend_entry.ts";

/** The exports of the module. */
export interface BackendExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  beginModule(arm64: number, bits: number, ...counts: number[]): void;
  setShared(memory: number): void;
  addSignature(params: number, results: number): void;
  setSignatureType(id: number, k: number, ty: number): void;
  /** Selects instructions for the function that is loaded. */
  select(signature: number, funcIndex: number): void;
  /** Allocates the registers of the selected function with the freedoms that `bits` gives. */
  allocateSelected(bits: number): void;
  /** Emits it as defined function `index`. */
  emit(index: number): void;
  /** All steps from the IR that is loaded. */
  compileBody(signature: number, funcIndex: number, index: number, passes: number, allocation: number): void;
  /** All steps from the bytes of defined function `index`. */
  compileFunction(index: number, passes: number, allocation: number): void;
  codeFacts(index: number): number;
  relocation(k: number, n: number): number;
  counted(n: number): number;
}

/** Words of the record of code, and the first of those about a function. */
const FACTS = 12, FUNCTION_FACTS = 7;

/** The code of one image in an instance's memory. */
export class BackendModule {
  readonly #exports: BackendExports;

  constructor(exports: BackendExports) {
    this.#exports = exports;
  }

  /** Begins the functions of a module for a processor, whose stubs `code` contains. */
  begin(name: Target["name"], context: CodegenContext, code: MachineCode): void {
    const options = codegenOptions(context);
    const { memoriesOffset, importsOffset, sharedLengthsOffset, importedFuncs, sharedMemories, signatures } = options;
    const offsets = [memoriesOffset, importsOffset, sharedLengthsOffset, importedFuncs, sharedMemories.length];
    const image = [code.functionStart.length, code.stubStart[STUB.CONSTANTS], code.length];
    this.#exports.beginModule(Number(name === "arm64"), optionBits(options), ...offsets, ...image);
    for (const [memory, shared] of sharedMemories.entries()) if (shared !== 0) this.#exports.setShared(memory);
    for (const [id, { params, results }] of signatures.entries()) {
      this.#exports.addSignature(params.length, results.length);
      for (const [k, ty] of [...params, ...results].entries()) this.#exports.setSignatureType(id, k, ty);
    }
  }

  /** Selects instructions for `f`, which is loaded and has the signature with the id. */
  select(f: IrFunction, signature: number): void {
    this.#exports.select(signature, f.funcIndex);
  }

  allocate(bits: number): void {
    this.#exports.allocateSelected(bits);
  }

  emit(index: number): void {
    this.#exports.emit(index);
  }

  /** The applications of each optimization to the function selected last. */
  counts(): Record<string, number> {
    return Object.fromEntries(COUNT_FIELDS.map((name, n) => [name, this.#exports.counted(n)]));
  }

  /** The first difference between what is known of function `index` in memory and in `expected`; undefined for none. */
  functionDifference(expected: MachineCode, index: number): string | undefined {
    const { writtenGeneral, writtenVector, functionStart, functionEnd, functionFrame } = expected;
    const own = [writtenGeneral, writtenVector, functionStart, functionEnd, functionFrame].map((list) => list[index]);
    return difference("fact", this.#facts(index).slice(FUNCTION_FACTS), own);
  }

  /** The first difference between the code in memory, from offset `from` on, and `expected`; undefined for none. */
  difference(expected: MachineCode, from: number): string | undefined {
    const { buffer } = this.#exports.memory;
    const [bytes, length, calls, callsAt, traps, trapsAt, relocations] = this.#facts(0);
    return difference(
      "byte",
      new Uint8Array(buffer, bytes, length),
      expected.bytes.subarray(0, expected.length),
      from,
    ) ??
      difference("word of a call", new Int32Array(buffer, callsAt, calls), expected.callRows) ??
      difference("word of a trap", new Int32Array(buffer, trapsAt, traps), expected.trapRows) ??
      difference("word of a relocation", this.#relocations(relocations), relocationsOf(expected));
  }

  #facts(index: number): Int32Array {
    const at = this.#exports.codeFacts(index);
    return new Int32Array(this.#exports.memory.buffer, at, FACTS);
  }

  #relocations(count: number): number[] {
    return Array.from({ length: count }, (_, k) => [0, 1, 2].map((n) => this.#exports.relocation(k, n))).flat();
  }
}

function relocationsOf({ relocAt, relocKind, relocTarget }: MachineCode): number[] {
  return relocAt.flatMap((at, k) => [at, relocKind[k], relocTarget[k]]);
}

function difference(
  name: string,
  found: ArrayLike<number>,
  expected: ArrayLike<number>,
  from = 0,
): string | undefined {
  if (found.length !== expected.length) return `${name}: ${found.length} of them for ${expected.length}`;
  for (let i = from; i < expected.length; i++) {
    if (found[i] !== expected[i]) return `${name} ${i}: ${found[i]} for ${expected[i]}`;
  }
  return undefined;
}

/** The bits for `options`, in the order in which the entry reads them. */
function optionBits(options: CodegenOptions): number {
  return OPTION_FLAGS.reduce((bits, name, n) => options[name] ? bits | (1 << n) : bits, 0);
}
