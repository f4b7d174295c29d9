/**
 * Limits of a run: `--timeout TIME`, `--processor-time TIME`, `--fuel N`, `--max-memory SIZE`, `--max-heap SIZE`. In:
 * the flag values. Out: the context of the run, and the engine options that make compiled code obey it. Times are
 * milliseconds and sizes are pages of 64 KiB, unless they have a unit.
 */
import type { Context, EngineOptions } from "@waft/engine";
import { TrapError } from "@waft/engine/internal/errors";
import { FileFailure, UsageError } from "../../base/failure.ts";
import type { OptionRow } from "../option_rows.ts";

export interface ControlFlags {
  timeout?: string;
  processorTime?: string;
  fuel?: string;
  maxMemory?: string;
  maxHeap?: string;
}

/** The options. */
export const CONTROL_OPTION_ROWS: readonly OptionRow[] = [
  { flags: "--timeout <time>", description: "Interrupt the guest after this time: milliseconds, or such as 5s or 2m" },
  {
    flags: "--processor-time <time>",
    description: "Interrupt the guest after this much processor time (as --timeout); waiting does not count",
  },
  { flags: "--fuel <n>", description: "Stop the guest after this many units of fuel, about one per instruction" },
  {
    flags: "--max-memory <size>",
    description: "Maximum size of each memory: pages of 64 KiB, or such as 256MiB (default: 1GiB)",
  },
  {
    flags: "--max-heap <size>",
    description: "Maximum size of the objects of each instance: pages of 64 KiB, or such as 256MiB (default: 4GiB)",
  },
];

/**
 * The context that the flags ask for. The time runs from the first reading of the deadline, which is when the guest
 * starts: reading and compiling its file, and loading the host's own modules, do not count.
 */
export function runContext(flags: ControlFlags): Context {
  return runContexts(flags)();
}

/** Returns a function that makes contexts as {@linkcode runContext} does, from flags that are read once. */
export function runContexts(flags: ControlFlags): () => Context {
  const limits: Context = {
    ...(flags.processorTime === undefined
      ? {}
      : { processorTime: milliseconds("--processor-time", flags.processorTime) }),
    ...(flags.fuel === undefined ? {} : { fuel: wholeNumber("--fuel", flags.fuel) }),
  };
  if (flags.timeout === undefined) return () => ({ ...limits });
  const time = milliseconds("--timeout", flags.timeout);
  return () => {
    let deadline: Date | undefined;
    return Object.defineProperty({ ...limits }, "deadline", {
      get: () => deadline ??= new Date(Date.now() + time),
      enumerable: true,
    });
  };
}

/** Names the options whose limits ended the guest in the error that reports it. Returns the error. */
export function withLimitNames(error: unknown, flags: ControlFlags): unknown {
  if (!(error instanceof FileFailure)) return error;
  const { cause } = error;
  if (cause instanceof TrapError) {
    const option = limitOf(cause, flags);
    if (option !== undefined) cause.detail = option;
  } else if (cause instanceof RangeError && EXCEEDED.test(cause.message)) {
    const option = flags.maxMemory === undefined ? "the default of --max-memory" : `--max-memory ${flags.maxMemory}`;
    return new FileFailure(error.file, new RangeError(`${cause.message} (${option})`, { cause }));
  }
  return error;
}

/** The engine's message about a memory that begins larger than its limit. */
const EXCEEDED = /^Out of memory: \d+ pages exceed the limit of \d+$/;

/** The option that set the limit which a trap reports, as it was given. */
function limitOf({ code, detail = "" }: TrapError, flags: ControlFlags): string | undefined {
  const timed = (name: string, text: string | undefined) => {
    return text === undefined ? undefined : `${name} ${text}${/^\d+$/.test(text) ? " ms" : ""}`;
  };
  if (code === "out-of-memory") return flags.maxHeap === undefined ? undefined : `--max-heap ${flags.maxHeap}`;
  if (code === "out-of-fuel") return flags.fuel === undefined ? undefined : `--fuel ${flags.fuel}`;
  if (code !== "interrupted") return undefined;
  return detail.endsWith("of processor time")
    ? timed("--processor-time", flags.processorTime)
    : timed("--timeout", flags.timeout);
}

/** Adds to `engine` the options that the flags need. */
export function controlledEngine(engine: EngineOptions, flags: ControlFlags): EngineOptions {
  return {
    ...engine,
    ...(flags.timeout === undefined && flags.processorTime === undefined ? {} : { interruptible: true }),
    ...(flags.fuel === undefined ? {} : { fuel: true }),
    ...(flags.maxMemory === undefined && flags.maxHeap === undefined
      ? {}
      : { limits: { ...engine.limits, ...sizeLimits(flags) } }),
  };
}

function sizeLimits({ maxMemory, maxHeap }: ControlFlags): NonNullable<EngineOptions["limits"]> {
  return {
    ...(maxMemory === undefined ? {} : { maxMemoryPages: pagesOf("--max-memory", maxMemory) }),
    ...(maxHeap === undefined ? {} : { maxHeapBytes: pagesOf("--max-heap", maxHeap) * PAGE_BYTES }),
  };
}

function wholeNumber(flag: string, text: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  if (!Number.isSafeInteger(value)) throw new UsageError(`${flag} takes a whole number, not "${text}"`);
  return value;
}

/** Milliseconds in the units of times. */
const TIME_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** A year: longer limits are mistakes of units. */
const MAX_MS = 366 * 24 * TIME_UNITS.h;

/** Parses `1500`, in milliseconds, or a number with a unit, such as `1.5s`. Throws UsageError. */
export function milliseconds(flag: string, text: string): number {
  const value = withUnit(text, TIME_UNITS) ?? NaN;
  if (Number.isNaN(value)) {
    throw new UsageError(`${flag} takes milliseconds, or a number with ms, s, m or h, such as 5s, not "${text}"`);
  }
  if (value > MAX_MS) throw new UsageError(`${flag} takes at most a year (8784h), not "${text}"`);
  return Math.ceil(value);
}

const PAGE_BYTES = 65_536;

/** Pages in the units of sizes. */
const SIZE_UNITS: Readonly<Record<string, number>> = {
  KiB: 2 ** 10 / PAGE_BYTES,
  MiB: 2 ** 20 / PAGE_BYTES,
  GiB: 2 ** 30 / PAGE_BYTES,
  TiB: 2 ** 40 / PAGE_BYTES,
};

/** 16 TiB: no process has more address space to reserve. */
const MAX_PAGES = 2 ** 28;

/**
 * Parses a number of pages, or bytes with a unit, such as `256MiB`, of which a part of a page does not count. Throws
 * UsageError.
 */
function pagesOf(flag: string, text: string): number {
  const value = withUnit(text, SIZE_UNITS) ?? NaN;
  if (Number.isNaN(value) || (value > 0 && value < 1)) {
    throw new UsageError(
      `${flag} takes pages of 64 KiB, or at least one page as a size with KiB, MiB or GiB, such as 256MiB, not "${text}"`,
    );
  }
  if (value > MAX_PAGES) throw new UsageError(`${flag} takes at most ${MAX_PAGES} pages (16TiB), not "${text}"`);
  return Math.floor(value);
}

/** A whole number, or a decimal one with a unit, in the table's measure; undefined for other text. */
function withUnit(text: string, units: Readonly<Record<string, number>>): number | undefined {
  if (/^\d+$/.test(text)) return Number(text);
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)([A-Za-z]+)$/.exec(text) ?? [];
  return amount === undefined || !Object.hasOwn(units, unit) ? undefined : Number(amount) * units[unit];
}
