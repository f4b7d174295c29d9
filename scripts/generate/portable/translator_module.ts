/**
 * Translation as WebAssembly, from the host. In: an instance of the module (translator_entry.ts), and the environment
 * of a valid module. Out: its functions, translated in the instance's memory, where they can be compared with those
 * that the host translated.
 */
import type { IrFunction } from "../../../engine/ir/function.ts";
import { describeModule, type ModuleDescription } from "../../../engine/translate/describe_module.ts";
import type { ModuleEnv } from "../../../engine/translate/module_env.ts";
import { type CompilerExports, COUNTS } from "../../../engine/portable/compiler_interface.ts";
import { readFailure } from "../../../engine/portable/compiler_status.ts";
import { writeModule } from "../../../engine/portable/module_writer.ts";
import { countTranslation, TranslationCounts } from "../../../engine/translate/module_facts.ts";
import type { Statistics } from "../../../engine/base/statistics.ts";

/** The exports of the module. */
export interface TranslatorExports extends CompilerExports {
  /** Translates a defined function; returns the address of its record. */
  translate(definedIndex: number): number;
  inlineSites(): number;
}

/** The translation of a module in an instance's memory. */
export class TranslatorModule {
  readonly #exports: TranslatorExports;
  #description: ModuleDescription | undefined;

  constructor(exports: TranslatorExports) {
    this.#exports = exports;
  }

  /** Writes the module of `env`. */
  open(env: ModuleEnv): void {
    this.#description = describeModule(env);
    this.#write();
  }

  #write(): void {
    writeModule(this.#exports, this.#description!);
  }

  /**
   * Translates defined function `definedIndex`; returns the address of its record (optimizer_module.ts). Throws the
   * error that function.ts throws for a function that cannot be compiled; other functions of the module can be
   * translated after it.
   */
  translate(definedIndex: number): number {
    try {
      return this.#exports.translate(definedIndex);
    } catch (trap) {
      const { error } = readFailure(this.#exports);
      this.#exports.reset();
      this.#write();
      throw error ?? trap;
    }
  }

  /** Adds the counts of the function that was translated last to `statistics`. */
  report(statistics: Statistics): void {
    const words = new Int32Array(this.#exports.memory.buffer, this.#exports.counts(), COUNTS.translation.length);
    const counts = new TranslationCounts();
    for (const [n, name] of COUNTS.translation.entries()) counts[name] = words[n];
    countTranslation(counts, statistics);
  }

  /** The first difference between the inlined calls of the function in memory and those of `expected`. */
  siteDifference({ inlineSites }: IrFunction): string | undefined {
    const found = this.#exports.inlineSites();
    if (found !== inlineSites.length) return `${found} inline sites for ${inlineSites.length}`;
    for (const [n, { parent, callPos, funcIndex }] of inlineSites.entries()) {
      const site = [0, 1, 2].map((field) => this.#exports.inlineSite(n, field));
      if (site[0] !== parent || site[1] !== callPos || site[2] !== funcIndex) return `inline site ${n}: ${site}`;
    }
    return undefined;
  }
}
