/**
 * The calls of host functions that a debugged program has made. In: the program's imports and its memories. Out:
 * imports that make each call once: after {@linkcode HostLog.rewind} they repeat results, exceptions and changes of the
 * memories from the log, and call the host again from its end on. So a second run of the program is the same as the
 * first.
 *
 * Invariant: host functions change only the memories of the instance, as the functions of WASI do.
 */
import { Buffer } from "node:buffer";
import { WASI_FUNCTIONS } from "@waft/engine/internal/wasi/abi";

/** Imports by namespace and name. */
type Imports = Record<string, Record<string, unknown>>;
type HostFunction = (...args: unknown[]) => unknown;

/** Bytes that a call has written. */
interface Patch {
  readonly memory: number;
  readonly at: number;
  readonly bytes: Uint8Array;
}

/** A call with its outcome. */
interface LoggedCall {
  readonly name: string;
  readonly args: readonly unknown[];
  readonly patches: readonly Patch[];
  readonly outcome: { readonly result: unknown } | { readonly error: unknown };
}

/** The unit in which memories are compared. */
const BLOCK = 4096;
/** Largest memories that are compared at each call, and most bytes in the log. */
const MAX_MEMORY = 256 << 20;
const MAX_LOGGED = 512 << 20;
const EMPTY = new Uint8Array(0);

/** A part of the first memory: address and length. */
type Region = readonly [at: number, length: number];

/** Where functions of WASI write, by their arguments; others are found by comparing the memories. */
const REGIONS: Readonly<Record<string, ((args: readonly number[]) => readonly Region[]) | undefined>> = Object
  .fromEntries(
    Object.entries(WASI_FUNCTIONS).map(([name, { writes }]) => [`wasi_snapshot_preview1 ${name}`, writes]),
  );

/** The calls of one program. */
export class HostLog {
  readonly #calls: LoggedCall[] = [];
  #next = 0;
  #logged = 0;
  #isWhole = true;

  /** True as long as the log has everything that a second run needs. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Begins again with the first call. */
  rewind(): void {
    this.#next = 0;
  }

  /** The imports with logged functions; `memories` are those of the instance that calls. */
  logged(imports: Imports, memories: () => readonly Uint8Array[]): Imports {
    const result: Imports = Object.create(null);
    for (const [module, functions] of Object.entries(imports)) {
      const logged = result[module] = Object.create(null) as Record<string, unknown>;
      for (const [name, value] of Object.entries(functions)) {
        logged[name] = typeof value === "function"
          ? this.#function(`${module} ${name}`, value as HostFunction, memories)
          : value;
      }
    }
    return result;
  }

  #function(name: string, run: HostFunction, memories: () => readonly Uint8Array[]): HostFunction {
    return (...args) => {
      const known = this.#calls[this.#next];
      if (known !== undefined) return this.#repeat(known, name, args, memories());
      return this.#isWhole ? this.#call(name, run, args, memories) : run(...args);
    };
  }

  #repeat(call: LoggedCall, name: string, args: readonly unknown[], memories: readonly Uint8Array[]): unknown {
    const isSame = call.name === name && call.args.length === args.length &&
      call.args.every((arg, k) => Object.is(arg, args[k]));
    if (!isSame) throw new Error("the program does not repeat its run: its variables or its memory were changed");
    this.#next++;
    for (const { memory, at, bytes } of call.patches) if (bytes.length > 0) memories[memory]?.set(bytes, at);
    if ("error" in call.outcome) throw call.outcome.error;
    return call.outcome.result;
  }

  #call(name: string, run: HostFunction, args: readonly unknown[], memories: () => readonly Uint8Array[]): unknown {
    const regions = REGIONS[name]?.(args.map((arg) => Number(arg) >>> 0));
    const before = regions === undefined ? memories() : [];
    const size = before.reduce((sum, { length }) => sum + length, 0);
    if (size > MAX_MEMORY || this.#logged > MAX_LOGGED) this.#isWhole = false;
    if (!this.#isWhole) return run(...args);
    const copies = before.map((bytes) => bytes.slice());
    const add = (outcome: LoggedCall["outcome"]): void => {
      const patches = regions === undefined
        ? memories().flatMap((bytes, memory) => patchesOf(copies[memory], bytes, memory))
        : regions.map(([at, length]) => ({ memory: 0, at, bytes: memories()[0]?.slice(at, at + length) ?? EMPTY }));
      this.#logged += patches.reduce((sum, { bytes }) => sum + bytes.length, 64);
      this.#calls.push({ name, args, patches, outcome });
      this.#next = this.#calls.length;
    };
    let result: unknown;
    try {
      result = run(...args);
    } catch (error) {
      add({ error });
      throw error;
    }
    add({ result });
    return result;
  }
}

/** The blocks of `after` that differ from `before`. */
function patchesOf(before = EMPTY, after: Uint8Array, memory: number): Patch[] {
  const patches: Patch[] = [];
  for (let at = 0; at < after.length; at += BLOCK) {
    const bytes = after.subarray(at, at + BLOCK);
    if (Buffer.compare(before.subarray(at, at + BLOCK), bytes) !== 0) {
      patches.push({ memory, at, bytes: bytes.slice() });
    }
  }
  return patches;
}
