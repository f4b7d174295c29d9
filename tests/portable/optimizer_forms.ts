/**
 * The optimizer in three forms: TypeScript, WebAssembly on the host's engine, and machine code of the optimizing tier.
 * In: a function as translated. Out: nothing; an error names the form, the pass and the first column that differs from
 * that of TypeScript.
 */
import type { IrFunction } from "../../engine/ir/function.ts";
import type { OptimizationSet } from "../../engine/settings/optimizations.ts";
import { passOptions } from "../../engine/optimize/pass_options.ts";
import { optimize, OptimizerWorkspace } from "../../engine/optimize/passes.ts";
import { passBits } from "../../engine/portable/compiler_interface.ts";
import { Statistics } from "../../engine/base/statistics.ts";
import { type CompiledForm, compilerExports } from "../../scripts/generate/portable/compiler_forms.ts";
import {
  type OptimizerExports,
  OptimizerModule,
  type Snapshot,
  snapshotOf,
} from "../../scripts/generate/portable/optimizer_module.ts";

/** The state of a function after a pass. */
interface PassState {
  readonly pass: string;
  readonly columns: Snapshot;
}

/** The forms other than TypeScript. */
const FORMS: readonly CompiledForm[] = ["WebAssembly", "machine code"];

class Form {
  readonly exports: OptimizerExports;
  readonly #module: OptimizerModule;
  readonly #name: CompiledForm;
  #expected: readonly PassState[] = [];
  #seen = 0;
  #difference: string | undefined;

  constructor(name: CompiledForm, bytes: Uint8Array<ArrayBuffer>) {
    this.#name = name;
    this.exports = compilerExports(name, bytes, (address) => this.#compare(this.#module.textAt(address)));
    this.#module = new OptimizerModule(this.exports);
    this.#module.observe(true);
  }

  load(f: IrFunction): void {
    this.#module.load(f);
  }

  reset(): void {
    this.#module.reset();
  }

  /** Runs the passes over the function that was loaded. Throws an Error at a difference. */
  run(bits: number, expected: readonly PassState[]): void {
    this.#expected = expected;
    this.#seen = 0;
    this.#difference = undefined;
    this.#module.run(bits);
    this.#difference ??= this.#seen === expected.length ? undefined : `${this.#seen} passes for ${expected.length}`;
    if (this.#difference !== undefined) throw new Error(`${this.#name}: ${this.#difference}`);
  }

  #compare(pass: string): void {
    const state = this.#expected[this.#seen++];
    if (this.#difference !== undefined) return;
    if (state?.pass !== pass) this.#difference = `pass ${pass} for ${state?.pass}`;
    else {
      const difference = this.#module.difference(state.columns);
      if (difference !== undefined) this.#difference = `after ${pass}, ${difference}`;
    }
  }
}

/** The three forms of the optimizer, each with its workspace. */
export class OptimizerForms {
  readonly #workspace = new OptimizerWorkspace();
  readonly #forms: readonly Form[];
  /** Functions and passes compared. */
  functions = 0;
  readonly passes = new Map<string, number>();

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.#forms = FORMS.map((name) => new Form(name, bytes));
  }

  /** The instances of the forms other than TypeScript. */
  get exports(): readonly OptimizerExports[] {
    return this.#forms.map(({ exports }) => exports);
  }

  /** Optimizes `f` in all forms and compares its columns after every pass. Throws an Error at a difference. */
  compare(f: IrFunction, optimizations: OptimizationSet): void {
    for (const form of this.#forms) form.load(f);
    const expected: PassState[] = [];
    const afterPass = (pass: string) => {
      expected.push({ pass, columns: snapshotOf(f) });
      this.passes.set(pass, (this.passes.get(pass) ?? 0) + 1);
    };
    optimize(f, optimizations, new Statistics(), afterPass, this.#workspace);
    const bits = passBits(passOptions(optimizations));
    for (const form of this.#forms) form.run(bits, expected);
    this.functions++;
  }

  /** Drops the workspaces, as between two modules. */
  reset(): void {
    for (const form of this.#forms) form.reset();
  }
}
