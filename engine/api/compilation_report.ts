/**
 * A report of one compilation for embedders: the compiler, the time and the size of each function. In: the compiled
 * code and the times that compileModule notes. Out: plain data. Invariant: making a report changes no code.
 */
import type { CompiledModule } from "../runtime/code/compiled_module.ts";

/** The record of one function's compilation. */
export interface FunctionReport {
  /** Index in the function index space, imports included. */
  readonly index: number;
  /** Name from the name section or an export, if there is one. */
  readonly name: string | undefined;
  /** Its compiler. */
  readonly tier: "baseline" | "optimizing";
  /** Size of the body in the binary form, in bytes. */
  readonly bodyBytes: number;
  /** Size of the machine code in bytes. */
  readonly codeBytes: number;
  /** Milliseconds that compiling it took; undefined if another thread or process did. */
  readonly ms: number | undefined;
}

/** The result of one compilation, or of loading one from the cache. */
export interface CompilationReport {
  /**
   * `baseline`: the quick compiler, which leaves bodies that it does not cover to the optimizing compiler;
   * `optimizing`: the optimizing compiler for all bodies.
   */
  readonly tier: "baseline" | "optimizing";
  /** The form in which the baseline compiler ran; undefined if it did not. */
  readonly kernel: "native" | "wasm" | "typescript" | undefined;
  /**
   * `compile`: the call of `compile`; `background`: a helper thread while the module ran; `cache`: a stored artifact.
   */
  readonly origin: "compile" | "background" | "cache";
  /** `functions`: hot functions, before the module; `loop`: the rest of a function, for frames that are in a loop. */
  readonly part: "module" | "functions" | "loop";
  /** Milliseconds that it took; for a helper thread, from the request to the switch. */
  readonly ms: number;
  /** Milliseconds from the first instance to the switch; undefined for code with which the module starts. */
  readonly afterMs: number | undefined;
  /** Size of the image in bytes: functions, stubs and thunks. */
  readonly codeBytes: number;
  /** The defined functions that were compiled, in the order of their indices. */
  readonly functions: readonly FunctionReport[];
}

/** The parts of a report that its maker knows. */
type ReportParts =
  & Pick<CompilationReport, "tier" | "kernel" | "origin" | "ms">
  & Partial<Pick<CompilationReport, "part" | "afterMs">>;

/** Notes how each function is compiled. */
export class FunctionNotes {
  readonly #rows = new Map<number, Pick<FunctionReport, "tier" | "ms">>();

  /** Notes that defined function `index` was compiled in `ms` milliseconds. */
  readonly note = (index: number, tier: FunctionReport["tier"], ms: number): void => {
    this.#rows.set(index, { tier, ms });
  };

  /** The report of the compilation that gave `compiled`. */
  report(
    compiled: CompiledModule,
    { part = "module", afterMs, ...parts }: ReportParts,
  ): CompilationReport {
    const { valid, image, importedFuncCount } = compiled;
    const { functionStart, functionEnd } = image.tables;
    const rows = part === "module" ? this.#rows : new Map<number, never>();
    const functions = valid.funcs.map(({ body }, k): FunctionReport => ({
      index: importedFuncCount + k,
      name: compiled.funcName(importedFuncCount + k),
      bodyBytes: body.bytes.length,
      codeBytes: functionEnd[k] - functionStart[k],
      ...rows.get(k) ?? { tier: "optimizing", ms: undefined },
    })).filter((_, k) => functionStart[k] >= 0);
    return { ...parts, part, afterMs, codeBytes: image.size, functions };
  }
}
