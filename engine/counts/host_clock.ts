/**
 * Calls of host functions, counted and timed. In: the imports of an instance. Out: the same with functions that count,
 * and the counts. Invariant: a function is called with the same arguments, and returns or throws the same.
 */
import { now } from "../host/clocks.ts";
import type { HostCalls } from "./run_counts.ts";

/** The values of imports, by module and name. */
type ImportValues = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Counts and times calls of host functions. */
export class HostClock {
  readonly #rows: { module: string; name: string; calls: number; ms: number }[] = [];

  /** The imports with functions that count. */
  timed(imports: ImportValues): Record<string, Record<string, unknown>> {
    return mapped(
      imports,
      (module, functions) =>
        mapped(functions, (name, value) => isFunction(value) ? this.#timed(module, name, value) : value),
    );
  }

  #timed(module: string, name: string, run: (...args: unknown[]) => unknown): (...args: unknown[]) => unknown {
    const row = { module, name, calls: 0, ms: 0 };
    this.#rows.push(row);
    return (...args) => {
      row.calls++;
      const start = now();
      try {
        return run(...args);
      } finally {
        row.ms += now() - start;
      }
    };
  }

  /** The functions that were called. */
  calls(): HostCalls[] {
    return this.#rows.filter(({ calls }) => calls > 0).sort((a, b) => b.ms - a.ms || b.calls - a.calls);
  }
}

function isFunction(value: unknown): value is (...args: unknown[]) => unknown {
  return typeof value === "function";
}

function mapped<A, B>(record: Readonly<Record<string, A>>, change: (key: string, value: A) => B): Record<string, B> {
  const result: Record<string, B> = Object.create(null);
  for (const [key, value] of Object.entries(record)) result[key] = change(key, value);
  return result;
}
