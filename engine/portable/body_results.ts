/**
 * The work of a module in an instance of the compiler, and the results of a body. In: the state of a module's
 * compilation. Out: the same in the instance's memory; code and counts of bodies in the engine's.
 */
import { codegenOptions, countCodegen } from "../codegen/codegen_options.ts";
import { appendFunction } from "../codegen/function_code.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { ModuleWork } from "../compile/compile_options.ts";
import { countPasses, PassCounts } from "../optimize/pass_options.ts";
import { allocatorOptions, countApplications } from "../regalloc/allocator_options.ts";
import type { ModuleDescription } from "../translate/describe_module.ts";
import { countTranslation, TranslationCounts } from "../translate/module_facts.ts";
import { type CompilerExports, COUNTS, FACT } from "./compiler_interface.ts";
import { beginCode, writeModule, writeRegisters } from "./module_writer.ts";

/** Writes the module, the registers and the options of a compilation; returns the bits of its allocations. */
export function writeWork(
  exports: CompilerExports,
  { context, options: { target, settings } }: ModuleWork,
  description: ModuleDescription,
  code: MachineCode,
): number {
  writeModule(exports, description);
  const registers = target.registers(settings.explicitBounds, settings.fuel);
  const allocation = writeRegisters(exports, registers, context.optimizations);
  beginCode(exports, target.name, context, code);
  return allocation;
}

/** Appends function `index`, whose words of FACT are `facts`, to `code`. */
export function appendBody(
  { memory: { buffer } }: Pick<CompilerExports, "memory">,
  work: ModuleWork,
  code: MachineCode,
  index: number,
  facts: Int32Array,
): void {
  const words = (at: number, count: number) => new Int32Array(buffer, facts[at], count);
  const relocations = facts[FACT.RELOCATIONS];
  appendFunction(code, work.options.target.filler, index, {
    bytes: new Uint8Array(buffer, facts[FACT.CODE_AT], facts[FACT.CODE_BYTES]),
    alignment: facts[FACT.ALIGNMENT],
    end: facts[FACT.END],
    frame: facts[FACT.FRAME],
    relocAt: words(FACT.RELOC_AT, relocations),
    relocKind: words(FACT.RELOC_KIND_AT, relocations),
    relocTarget: words(FACT.RELOC_TARGET_AT, relocations),
    callRows: words(FACT.CALLS_AT, facts[FACT.CALL_WORDS]),
    trapRows: words(FACT.TRAPS_AT, facts[FACT.TRAP_WORDS]),
  });
  code.writtenGeneral[index] = facts[FACT.WRITTEN_GENERAL];
  code.writtenVector[index] = facts[FACT.WRITTEN_VECTOR];
  code.writtenKnown[index] = 1;
}

/** Adds the counts of functions to the statistics of a compilation. */
export class BodyCounts {
  readonly #work: ModuleWork;
  readonly #translation = new TranslationCounts();
  readonly #passes = new PassCounts();
  readonly #allocation;
  readonly #codegen;
  readonly #denied;

  constructor(work: ModuleWork) {
    const { context, options: { target, settings } } = work;
    this.#work = work;
    this.#denied = target.registers(settings.explicitBounds, settings.fuel).denied;
    this.#allocation = allocatorOptions(context.optimizations, this.#denied);
    this.#codegen = codegenOptions(context);
  }

  /** Adds those of a function: `words` is the record of its counts. */
  add(words: Int32Array): void {
    const { env: { statistics }, context, options: { target } } = this.#work;
    let at = 0;
    for (const name of COUNTS.translation) this.#translation[name] = words[at++];
    for (const name of COUNTS.passes) this.#passes[name] = words[at++];
    for (const name of COUNTS.allocation) this.#allocation.counts[name] = words[at++];
    for (const name of COUNTS.codegen) this.#codegen.counts[name] = words[at++];
    for (const row of this.#allocation.denied) row.applied = words[at++];
    countTranslation(this.#translation, statistics);
    countPasses(this.#passes, statistics);
    countApplications(this.#allocation, this.#denied, statistics);
    countCodegen(this.#codegen, target.elideKey, context);
  }
}
