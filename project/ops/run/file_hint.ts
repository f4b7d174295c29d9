/**
 * The hint for programs that fail because they reach no files. In: WASI's functions for a program without directories.
 * Out: the same functions, and whether the program has looked for files. Invariant: functions that programs call often
 * are not wrapped.
 */
import { asFunction } from "@waft/engine/internal/wasi/functions";
import { FileFailure, GuestExit } from "../../base/failure.ts";

type Functions = Readonly<Record<string, (...args: never[]) => unknown>>;

/** The functions of preview 1 by which programs find their directories, or open files in some that they assume. */
const PREVIEW1 = ["fd_prestat_get", "path_open"];

/** The search of a program for files. */
export class FileSearch {
  #isMade = false;

  /** `imports` of preview 1 that notice the search. */
  watch(imports: Functions): Functions {
    const watched = PREVIEW1.filter((name) => Object.hasOwn(imports, name));
    return {
      ...imports,
      ...Object.fromEntries(watched.map((name) => [name, asFunction(name, this.#noting(imports[name]))])),
    };
  }

  /** The interfaces of a component that notice the search. */
  watchInterfaces<I extends Readonly<Record<string, unknown>>>(imports: I): I {
    const watched = Object.entries(imports).filter(([name]) => name.startsWith("wasi:filesystem/preopens"));
    return {
      ...imports,
      ...Object.fromEntries(watched.map(([name, functions]) => {
        const { getDirectories, ...others } = functions as Functions;
        return [name, { ...others, getDirectories: this.#noting(getDirectories) }];
      })),
    };
  }

  /** Adds the hint to the failure of a program that has looked for files. */
  explain(error: unknown): void {
    if (!this.#isMade || !(error instanceof FileFailure || error instanceof GuestExit && error.status !== 0)) return;
    error.hint ??= "the program has looked for files, but it has no directory: --dir . gives it the current one";
  }

  #noting(fn: (...args: never[]) => unknown): (...args: never[]) => unknown {
    return (...args) => {
      this.#isMade = true;
      return fn(...args);
    };
  }
}
