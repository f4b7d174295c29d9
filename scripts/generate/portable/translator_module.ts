/**
 * Translation as WebAssembly, from the host. In: an instance of the module (translator_entry.ts), and the environment
 * of a valid module. Out: its functions, translated in the instance's memory, where they can be compared with those
 * that the host translated.
 */
import type { IrFunction } from "../../../engine/ir/function.ts";
import { describeModule, type ModuleDescription } from "../../../engine/translate/describe_module.ts";
import type { ModuleEnv } from "../../../engine/translate/module_env.ts";
import { attempt, type StatusExports } from "./compiler_status.ts";

/** The exports of the module. */
export interface TranslatorExports extends StatusExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  /** Makes room for a description and bodies; returns the description's address. */
  reserveModule(words: number, bytes: number): number;
  bodiesAddress(): number;
  openModule(): void;
  /** Translates a defined function; returns the address of its record. */
  translate(definedIndex: number): number;
  inlineSites(): number;
  /** Field 0 to 2 of an inlined call: parent, callPos, funcIndex. */
  inlineSite(n: number, field: number): number;
  /** The applications of an optimization, in the order of {@linkcode CHOSEN}. */
  chosen(n: number): number;
}

/** The keys of the optimizations that translation counts. */
export const CHOSEN = [
  ...["inline", "inline-loop-callees", "inline-callfree"],
  ...["immutable-table", "immutable-table-type", "immutable-poly-fastpath"],
] as const;

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
    const { words, bodies } = this.#description!;
    const at = this.#exports.reserveModule(words.length, bodies.length);
    const { buffer } = this.#exports.memory;
    new Int32Array(buffer, at, words.length).set(words);
    new Uint8Array(buffer, this.#exports.bodiesAddress(), bodies.length).set(bodies);
    this.#exports.openModule();
  }

  /**
   * Translates defined function `definedIndex`; returns the address of its record (optimizer_module.ts). Throws the
   * error that function.ts throws for a function that cannot be compiled; other functions of the module can be
   * translated after it.
   */
  translate(definedIndex: number): number {
    return attempt(this.#exports, () => this.#exports.translate(definedIndex), () => this.#write());
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
