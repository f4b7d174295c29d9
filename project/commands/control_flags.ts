/**
 * Limits of a run: `--timeout MS`, `--processor-time MS`, `--fuel N`, `--max-memory PAGES`. Input: the flag values.
 * Output: the context of the run, and the engine options that make compiled code obey it.
 */
import type { Context, EngineOptions } from "@waft/engine";
import { UsageError } from "../base/failure.ts";
import type { OptionRow } from "./option_rows.ts";

export interface ControlFlags {
  timeout?: string;
  processorTime?: string;
  fuel?: string;
  maxMemory?: string;
}

/** The options. */
export const CONTROL_OPTION_ROWS: readonly OptionRow[] = [
  { flags: "--timeout <ms>", description: "Interrupt the guest after this many milliseconds" },
  {
    flags: "--processor-time <ms>",
    description: "Interrupt the guest after this much processor time; waiting does not count",
  },
  { flags: "--fuel <n>", description: "Stop the guest after this many units of fuel, about one per instruction" },
  {
    flags: "--max-memory <pages>",
    description: "Maximum size of each memory in pages of 64 KiB (default: 16384)",
  },
];

/**
 * The context that the flags ask for. The time runs from the first reading of the deadline, which is when the guest
 * starts: reading and compiling its file, and loading the host's own modules, do not count.
 */
export function runContext(flags: ControlFlags): Context {
  const context: Context = {
    ...(flags.processorTime === undefined
      ? {}
      : { processorTime: wholeNumber("--processor-time", flags.processorTime) }),
    ...(flags.fuel === undefined ? {} : { fuel: wholeNumber("--fuel", flags.fuel) }),
  };
  if (flags.timeout === undefined) return context;
  const milliseconds = wholeNumber("--timeout", flags.timeout);
  let deadline: Date | undefined;
  return Object.defineProperty(context, "deadline", {
    get: () => deadline ??= new Date(Date.now() + milliseconds),
    enumerable: true,
  });
}

/** Adds to `engine` the options that the flags need. */
export function controlledEngine(engine: EngineOptions, flags: ControlFlags): EngineOptions {
  return {
    ...engine,
    ...(flags.timeout === undefined && flags.processorTime === undefined ? {} : { interruptible: true }),
    ...(flags.fuel === undefined ? {} : { fuel: true }),
    ...(flags.maxMemory === undefined
      ? {}
      : { limits: { ...engine.limits, maxMemoryPages: wholeNumber("--max-memory", flags.maxMemory) } }),
  };
}

function wholeNumber(flag: string, text: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  if (!Number.isSafeInteger(value)) throw new UsageError(`${flag} takes a whole number, not "${text}"`);
  if (flag === "--timeout" && value > 1e12) throw new UsageError(`${flag} takes at most 10^12, not "${text}"`);
  return value;
}
