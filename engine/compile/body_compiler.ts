/**
 * The optimizing compiler of function bodies: IrFunction → VCode → machine code. In: the state of a module's
 * compilation (compile.ts). Out: code of single bodies. Invariant: nothing here is loaded before a body is optimized;
 * compile.ts loads body_compiler_x64.ts or body_compiler_arm64.ts for that.
 */
import { Allocation } from "../codegen/allocation.ts";
import type { MachineCode } from "../codegen/machine_code.ts";
import type { FunctionBackend, OptimizingTarget } from "../codegen/target.ts";
import { VCode } from "../codegen/vcode.ts";
import type { CompileBody, ModuleWork } from "./compile_options.ts";
import { Bug } from "../base/errors.ts";
import { IrFunction } from "../ir/function.ts";
import { verifyFunction } from "../ir/verify.ts";
import { carefulSet } from "../settings/optimizations.ts";
import { optimize, OptimizerWorkspace } from "../optimize/passes.ts";
import { allocateRegisters, AllocatorWorkspace } from "../regalloc/allocate.ts";
import { checkAllocation } from "../regalloc/check_allocation.ts";
import { FunctionTranslator } from "../translate/function.ts";

/** State that one compilation reuses from function to function; kept between modules because its columns are large. */
class Workspace {
  readonly f = new IrFunction();
  readonly translator = new FunctionTranslator();
  readonly optimizer = new OptimizerWorkspace();
  readonly v = new VCode();
  readonly allocator = new AllocatorWorkspace();
  readonly allocation = new Allocation();
  readonly backend: FunctionBackend;

  constructor(target: OptimizingTarget) {
    this.backend = target.functionBackend();
  }
}

/** Compiles bodies for one processor. */
export class BodyCompiler {
  readonly #target: OptimizingTarget;
  /** The workspace of the last compilation, for the next one to take. */
  #spare: Workspace | undefined;

  constructor(target: OptimizingTarget) {
    this.#target = target;
  }

  /** Runs `action` with a function that compiles one body of the module. */
  use(work: ModuleWork, action: (compile: CompileBody) => void): void {
    const space = this.#spare ?? new Workspace(this.#target);
    this.#spare = undefined; // a nested compilation creates another
    action((code, index) => {
      space.translator.translate(work.env, index, space.f);
      this.#compile(space, work, code, index);
      return inlineSiteWords(space.f);
    });
    this.#spare = space;
  }

  /**
   * Compiles function `index` from the loop at offset `at` on (translate/loop_entry.ts), as the code's function `as`.
   * Returns its inline sites as `CompileBody` does; undefined if the loop cannot be entered.
   */
  compileLoopEntry(work: ModuleWork, code: MachineCode, index: number, at: number, as: number): number[] | undefined {
    const space = this.#spare ?? new Workspace(this.#target);
    this.#spare = undefined;
    const isEntered = space.translator.translateLoop(work.env, index, at, space.f);
    if (isEntered) this.#compile(space, work, code, as);
    this.#spare = space;
    return isEntered ? inlineSiteWords(space.f) : undefined;
  }

  /** Compiles the translated function as the code's function `index`. */
  #compile(space: Workspace, { env, context, options }: ModuleWork, code: MachineCode, index: number): void {
    const { f, v, allocation, backend } = space;
    const { verify, settings: { explicitBounds, fuel }, careful } = options;
    const optimizations = careful?.has(index) === true ? carefulSet(options.optimizations) : options.optimizations;
    if (verify) verifyFunction(f);
    optimize(f, optimizations, env.statistics, verify ? (pass) => verifyFunction(f, pass) : undefined, space.optimizer);
    backend.select(f, v, context, code);
    const registers = this.#target.registers(explicitBounds, fuel);
    allocateRegisters(v, registers, optimizations, allocation, env.statistics, space.allocator);
    if (verify) {
      const faults = checkAllocation(v, registers, allocation);
      if (faults.length > 0) throw new Bug(`Register allocation of function ${f.funcIndex} is wrong: ${faults[0]}`);
    }
    backend.emit(v, allocation, context, code, index);
  }
}

function inlineSiteWords({ inlineSites }: IrFunction): number[] {
  return inlineSites.length > 1 ? inlineSites.flatMap((site) => [site.parent, site.callPos, site.funcIndex]) : [];
}
