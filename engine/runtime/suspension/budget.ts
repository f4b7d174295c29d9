/**
 * Budgets of tenants: memory, processor time and fuel that several instances share. In: limits, and a callback that can
 * refuse growth. Out: whether each growth is granted, and the remaining amounts. Invariant: bytes that an instance
 * releases, by `reset`, `close` or garbage collection, return to the budget.
 */
import { inWords, requireKnownNames, requireRecord, wholeNumber } from "../../base/arguments.ts";
import { formatAs } from "../../host/inspect.ts";
import { fuelUnits } from "./fuel_units.ts";
import { ProcessorAccount } from "./processor_account.ts";

/** The growth of a memory, a table or the heap of an instance, which a budget may refuse. */
export interface Growth {
  /** What grows; `heap` is the memory of the structures and arrays that an instance has made. */
  readonly kind: "memory" | "table" | "heap";
  /** Its bytes now; 0 for one that is made. */
  readonly from: number;
  /** Its bytes after it has grown. */
  readonly to: number;
}

/** The limits of a budget. */
export interface BudgetOptions {
  /**
   * The maximum number of bytes of all memories, tables (8 bytes an element) and objects (blocks of 64 KiB) together.
   * Default: no limit.
   */
  maxBytes?: number;
  /** The processor time of all calls together, in milliseconds. Default: no limit. */
  processorTime?: number;
  /** The fuel of all calls together. Default: no limit. */
  fuel?: number | bigint;
  /**
   * Called before a memory, table or heap grows or is made, within the limits; false refuses it. It must not call
   * guests.
   */
  mayGrow?: (growth: Growth) => boolean;
}

const OPTION_NAMES: Readonly<Record<keyof BudgetOptions, true>> = {
  maxBytes: true,
  processorTime: true,
  fuel: true,
  mayGrow: true,
};

/**
 * A budget that several instances and calls share, as the field `budget` of contexts: in that of `instantiate` it pays
 * for the memories, tables, structures and arrays of the instance, in that of a call for processor time and fuel. A
 * growth that is refused fails as at a limit: `memory.grow` returns −1, an allocation traps, an instantiation throws
 * RangeError.
 *
 * @example
 * ```ts
 * import { Budget, NewEngine } from "@waft/engine";
 *
 * const engine = NewEngine({ interruptible: true });
 * const module = engine.compile(`(module (memory 1)
 *   (func (export "grow") (result i32) (memory.grow (i32.const 1))))`);
 * const budget = new Budget({ maxBytes: 3 * 65536, processorTime: 1000 });
 * const [a, b] = [module.instantiate({ budget }), module.instantiate({ budget })];
 * if (a.call({ budget }, "grow") !== 1) throw new Error("there is room for one page");
 * if (b.call({ budget }, "grow") !== -1) throw new Error("there is no room for two");
 * ```
 */
export class Budget {
  readonly #maxBytes: number;
  readonly #mayGrow: BudgetOptions["mayGrow"];
  #usedBytes = 0;
  /** The remaining fuel; undefined without a limit. */
  fuel: number | bigint | undefined;
  /** @internal */
  readonly account: ProcessorAccount | undefined;

  /** Creates a budget. Throws TypeError and RangeError for options that are refused. */
  constructor(options: BudgetOptions = {}) {
    requireRecord(options, "The options of a budget");
    requireKnownNames("option of a budget", options, OPTION_NAMES);
    const { maxBytes, processorTime, fuel, mayGrow } = options;
    if (mayGrow !== undefined && typeof mayGrow !== "function") {
      throw new TypeError(`The option mayGrow must be a function, not ${inWords(mayGrow)}`);
    }
    if (fuel !== undefined) fuelUnits(fuel);
    this.#maxBytes = maxBytes === undefined ? Infinity : wholeNumber(maxBytes, "The option maxBytes");
    this.#mayGrow = mayGrow;
    this.fuel = fuel;
    this.account = processorTime === undefined ? undefined : new ProcessorAccount(processorTime);
  }

  /** The bytes of the memories, tables and objects that it pays for. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** The milliseconds of processor time that are left; undefined without a limit. */
  get processorTime(): number | undefined {
    return this.account?.left;
  }

  /**
   * Takes the bytes of a growth; returns false if they are not granted.
   *
   * @internal
   */
  take(kind: Growth["kind"], from: number, to: number): boolean {
    if (this.#usedBytes + to - from > this.#maxBytes) return false;
    if (this.#mayGrow !== undefined && this.#mayGrow({ kind, from, to }) !== true) return false;
    if (this.#usedBytes + to - from > this.#maxBytes) return false; // the function has made instances
    this.#usedBytes += to - from;
    return true;
  }

  /**
   * Takes bytes back.
   *
   * @internal
   */
  give(bytes: number): void {
    this.#usedBytes -= bytes;
  }
}

formatAs(Budget.prototype, (budget) => `Budget { usedBytes: ${budget.usedBytes} }`);
