/**
 * Progress display of a slow compilation: a line on the terminal, drawn by a separate thread. In: an activity, the
 * functions that are done. Out: the line, and a last one with the size of the result and the time.
 */
import { writeText } from "@waft/engine/internal/host/process";

/** The display of compilations. */
export interface CompileProgress {
  /** Starts the line; the function that it returns ends the line. */
  readonly start: (what: string) => () => void;
  /** The option `progress` of engines, which shows how much is done; none without a terminal. */
  readonly option: { readonly progress?: (done: number, total: number) => void };
  /** Writes what was made of `file` since this object was made, on a terminal. */
  readonly finish: (file: string, bytes: number) => void;
}

const SILENT: CompileProgress = { start: () => () => {}, option: {}, finish: () => {} };

/** The units of sizes. */
const UNITS = ["bytes", "KiB", "MiB", "GiB"] as const;

/** The display, if standard error is a terminal. */
export async function compileProgress(): Promise<CompileProgress> {
  const { default: process } = await import("node:process");
  if (process.stderr.isTTY !== true) return SILENT;
  const [{ reportDone, startBlocking }, { oneLine }] = await Promise.all([
    import("../../base/progress.ts"),
    import("../../base/failure.ts"),
  ]);
  const started = Date.now();
  return {
    start: startBlocking,
    option: { progress: reportDone },
    finish: (file, bytes) => {
      const seconds = ((Date.now() - started) / 1000).toFixed(1);
      writeText(2, `${oneLine(file)}: ${sizeText(bytes)} in ${seconds} s\n`);
    },
  };
}

/** A number of bytes with a unit and three digits or so. */
function sizeText(bytes: number): string {
  const unit = bytes < 1024 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1);
  const amount = bytes / 1024 ** unit;
  return `${unit === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${UNITS[unit]}`;
}
