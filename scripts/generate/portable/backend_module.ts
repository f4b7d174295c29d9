/**
 * Selection and emission as WebAssembly, from the host. In: an instance of the module (backend_entry.ts), and the
 * context of a compilation. Out: the code of functions, compared with that which the host made.
 */
import type { MachineCode } from "../../../engine/codegen/machine_code.ts";
import type { CodegenContext, Target } from "../../../engine/codegen/target.ts";
import type { IrFunction } from "../../../engine/ir/function.ts";
import { type CompilerExports, FACT } from "../../../engine/portable/compiler_interface.ts";
import { beginCode } from "../../../engine/portable/module_writer.ts";

/** The exports of the module. */
export interface BackendExports extends CompilerExports {
  /** Selects instructions for the function that is loaded. */
  select(signature: number, funcIndex: number): void;
  /** Allocates the registers of the selected function with the freedoms that `bits` gives. */
  allocateSelected(bits: number): void;
  /** Emits it as defined function `index`. */
  emit(index: number): void;
  /** All steps from the IR that is loaded. */
  compileBody(signature: number, funcIndex: number, index: number, passes: number, allocation: number): void;
  codeFacts(index: number): number;
}

/** The code of single functions in an instance's memory. */
export class BackendModule {
  readonly #exports: BackendExports;

  constructor(exports: BackendExports) {
    this.#exports = exports;
  }

  /** Begins the functions of a module for a processor, whose stubs `code` contains. */
  begin(name: Target["name"], context: CodegenContext, code: MachineCode): void {
    beginCode(this.#exports, name, context, code);
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

  /** The first difference between the code in memory and `expected`, which has function `index` alone. */
  difference(expected: MachineCode, index: number): string | undefined {
    const { buffer } = this.#exports.memory;
    const facts = new Int32Array(buffer, this.#exports.codeFacts(index), FACT.COUNT);
    const words = (at: number, count: number) => new Int32Array(buffer, facts[at], count);
    const relocations = facts[FACT.RELOCATIONS];
    const { writtenGeneral, writtenVector, functionEnd, functionFrame, missing } = expected;
    const found = [FACT.WRITTEN_GENERAL, FACT.WRITTEN_VECTOR, FACT.END, FACT.FRAME, FACT.MISSING].map((n) => facts[n]);
    const own = [...[writtenGeneral, writtenVector, functionEnd, functionFrame].map((list) => list[index]), missing];
    const bytes = new Uint8Array(buffer, facts[FACT.CODE_AT], facts[FACT.CODE_BYTES]);
    return difference("fact", found, own) ??
      difference("byte", bytes, expected.bytes.subarray(0, expected.length)) ??
      difference("word of a call", words(FACT.CALLS_AT, facts[FACT.CALL_WORDS]), expected.callRows) ??
      difference("word of a trap", words(FACT.TRAPS_AT, facts[FACT.TRAP_WORDS]), expected.trapRows) ??
      difference("place of a relocation", words(FACT.RELOC_AT, relocations), expected.relocAt) ??
      difference("kind of a relocation", words(FACT.RELOC_KIND_AT, relocations), expected.relocKind) ??
      difference("target of a relocation", words(FACT.RELOC_TARGET_AT, relocations), expected.relocTarget);
  }
}

function difference(name: string, found: ArrayLike<number>, expected: ArrayLike<number>): string | undefined {
  if (found.length !== expected.length) return `${name}: ${found.length} of them for ${expected.length}`;
  for (let i = 0; i < expected.length; i++) {
    if (found[i] !== expected[i]) return `${name} ${i}: ${found[i]} for ${expected[i]}`;
  }
  return undefined;
}
