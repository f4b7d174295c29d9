/**
 * Compilation of code that the verifier proves (EngineOptions.verify: "code"). In: a module and the options of its
 * code. Out: proven code, or the functions that are not proven in any form.
 *
 *     1. with the given options
 *     2. the functions that are not proven once more, with all their bounds checks (CompileOptions.careful)
 *     3. those that still are not with the other tier (CompileOptions.otherTier)
 *
 * A pure function of the module, the options and this build, as compilation is: the same bytes on every host.
 */
import { compileModule, stubContext } from "./compile.ts";
import type { CompiledCode } from "./compile.ts";
import type { CompileOptions } from "./compile_options.ts";
import { findUnproven, unprovenError } from "./late_verifier.ts";
import type { Finding } from "./verify_module.ts";
import type { Module } from "../wasm/module.ts";

/** Code and the functions of it that are not proven. */
interface Attempt {
  readonly code: CompiledCode;
  readonly unproven: readonly Finding[];
}

/** The code of the last attempt, and the number of functions that were compiled more than once. */
interface Proof extends Attempt {
  readonly recompiled: number;
}

function attempt(module: Module, options: CompileOptions): Attempt {
  const code = compileModule(module, options);
  return { code, unproven: findUnproven(code, options, stubContext(code.valid, options)) };
}

/**
 * The module once more, until its functions are proven: each that is not has all its bounds checks, then the code of
 * the other tier. Code of the baseline tier always has its checks. The last attempt is not proven if a function is not
 * in either tier.
 */
function proveAnew(module: Module, options: CompileOptions, first: Attempt): Proof {
  // Threads that share the bodies do not know these options.
  const { share: _, tier = "optimizing", ...rest } = options;
  const careful = new Set<number>(), otherTier = new Set<number>();
  let last = first;
  while (last.unproven.some(({ index }) => index >= 0 && !otherTier.has(index))) {
    for (const { index } of last.unproven) {
      if (tier === "baseline" || careful.has(index)) otherTier.add(index);
      careful.add(index);
    }
    last = attempt(module, { ...rest, tier, careful, otherTier });
  }
  return { ...last, recompiled: careful.size };
}

/** Compiles a module to proven code. Throws the errors of `compileModule`, and UnprovenCodeError. */
export function compileProven(module: Module, options: CompileOptions): CompiledCode {
  const { code, unproven } = proveAnew(module, options, attempt(module, options));
  if (unproven.length > 0) throw unprovenError(code, unproven);
  return code;
}

/** The code that `compileModule` makes, and the one that `compileProven` ends with. */
export function compileVerified(module: Module, options: CompileOptions): { first: Attempt; last: Proof } {
  const first = attempt(module, options);
  return { first, last: proveAnew(module, options, first) };
}
