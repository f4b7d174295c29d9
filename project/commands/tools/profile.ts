/**
 * `waft profile [options] FILE [ARG…]`: runs a program and shows where its time goes, or with `--counts` how often its
 * parts run: tables on the standard error stream, a page, a file for the Firefox profiler, JSON. The program's own
 * output and status are those of `waft run` without plugins; with `--json` its output goes to the standard error
 * stream.
 */
import { writeText } from "@waft/engine/internal/host/process";
import { type Profile, TrapError } from "@waft/engine";
import type { RunOptions } from "../../ops/run/run_options.ts";
import type { Command } from "commander";
import { basename } from "node:path";
import { FileFailure, oneLine, UsageError } from "../../base/failure.ts";
import { displayName } from "@waft/engine/internal/base/guest_stack";
import { safe } from "../../base/terminal.ts";
import { countTables, tableText } from "./count_tables.ts";
import { controlledEngine, runContext, withLimitNames } from "../run/control_flags.ts";
import { withEnvelope } from "./file_envelope.ts";
import { addOptions, type OptionRow } from "../option_rows.ts";
import { type ProjectGuest, projectGuest } from "../run/project_guest.ts";
import { networkOptions, RUN_OPTION_ROWS, type RunFlags } from "../run/run_flags.ts";

interface ProfileFlags extends RunFlags {
  readonly output?: string;
  readonly firefox?: string;
  readonly interval?: string;
  readonly counts?: boolean;
  readonly json?: boolean;
}

/** Options of `waft run` that make no sense here: projects, the cache, other reports. */
const LEFT_OUT = /^--(no-cache|perf-map|coredump|explain-compile|locked|trust|allow-path-plugins|offline)\b/;

const PROFILE_ROWS: readonly OptionRow[] = [
  { flags: "--output <page>", description: "Write a page with a flame graph, or with the counts" },
  { flags: "--firefox <file>", description: "Write a profile that the Firefox profiler opens (profiler.firefox.com)" },
  { flags: "--interval <ms>", description: "Milliseconds between samples, 0.1 to 1000 (default: 1)" },
  { flags: "--counts", description: "Count calls, loop iterations, allocations, memory growth and host calls instead" },
  {
    flags: "--json",
    description: "Print the functions or counts as JSON; the program's output goes to standard error",
  },
  ...RUN_OPTION_ROWS.filter(({ flags }) => !LEFT_OUT.test(flags)),
];

/** Functions in the table. */
const SHOWN = 12;

/** Adds `profile`. */
export function addCommand(program: Command): void {
  const command = program.command("profile")
    .description("Run a program and show where its time goes: functions, host functions, source lines.")
    .argument("<file>", "Module or component, in either form")
    .argument("[args...]", "Arguments of the function, or of the program")
    .passThroughOptions()
    .allowUnknownOption(false);
  const rows = PROFILE_ROWS.map((row) =>
    row.flags.startsWith("--output") ? { ...row, flags: `-o, ${row.flags}` } : row
  );
  addOptions(command, rows).action(async (file: string, args: string[], flags: ProfileFlags) => {
    checkFlags(flags);
    const { planFile } = await import("../../base/replace_file.ts");
    const plan = (path: string | undefined) => path === undefined ? undefined : { path, write: planFile(path) };
    const files = { output: plan(flags.output), firefox: plan(flags.firefox) };
    const report = await started(file, args, flags, await projectGuest(flags));
    if (report === undefined) return;
    if (report.lines.length > 0) writeText(flags.json === true ? 2 : 1, report.lines.join("\n") + "\n");
    writeText(2, report.table);
    for (const [kind, { title, content }] of Object.entries(report.files)) {
      const planned = files[kind as keyof typeof files];
      if (planned === undefined) continue;
      planned.write(await content(basename(file)));
      writeText(2, `${oneLine(planned.path)}: ${title}\n`);
    }
    if (report.failure !== undefined) throw withLimitNames(report.failure, flags);
  });
}

/** Runs the program, and prints its profile as JSON if that is wanted; undefined if it could not start. */
async function started(
  file: string,
  args: readonly string[],
  flags: ProfileFlags,
  guest: ProjectGuest,
): Promise<Report | undefined> {
  const options = runOptions(flags, guest);
  let report: Report | undefined;
  const run = async () => {
    report = flags.counts === true
      ? await countedReport(file, args, options)
      : await sampledReport(file, args, options, intervalOf(flags.interval));
    return report.data;
  };
  await withEnvelope("profile", file, flags.json === true, run, { data: (data) => data, print: () => {} });
  return report;
}

/** The profile of a run in its forms. */
interface Report {
  /** The lines that the program's results give, and its failure. */
  readonly lines: readonly string[];
  readonly failure?: unknown;
  readonly table: string;
  readonly data: object;
  /** Texts of files for the program of a name. */
  readonly files: Readonly<Record<string, { readonly title: string; content(name: string): string | Promise<string> }>>;
}

function checkFlags({ counts, firefox, interval, fuel, unknownImports }: ProfileFlags): void {
  if (unknownImports !== undefined && unknownImports !== "trap") {
    throw new UsageError(`--unknown-imports takes trap, not "${unknownImports}"`);
  }
  if (counts !== true) return;
  if (firefox !== undefined || interval !== undefined) {
    throw new UsageError("--counts takes no samples: leave out --firefox and --interval");
  }
  if (fuel !== undefined) throw new UsageError("--counts adds instructions, which --fuel would count: leave it out");
}

function runOptions(flags: ProfileFlags, { engine, ...guest }: ProjectGuest): RunOptions {
  return {
    engine: controlledEngine(engine, flags),
    allowPrecompiled: flags.allowPrecompiled === true,
    ...(flags.invoke === undefined ? {} : { invoke: flags.invoke }),
    ...(flags.net.length + flags.listen.length === 0 ? {} : { network: networkOptions(flags) }),
    ...(flags.unknownImports === undefined ? {} : { unknownImports: "trap" as const }),
    ...(flags.json === true ? { stdio: [0, 2, 2] as const } : {}),
    ...guest,
    context: runContext(flags),
  };
}

async function sampledReport(
  file: string,
  args: readonly string[],
  options: RunOptions,
  interval: number,
): Promise<Report> {
  const { profileFile } = await import("../../ops/run/profile.ts");
  const { lines, failure, profile } = await profileFile(file, args, options, interval);
  const { sampleStacks, dropped } = profile;
  // A program that could not start has no profile.
  const hasRun = !(failure instanceof FileFailure) || failure.cause instanceof TrapError;
  if (!hasRun && sampleStacks.length === 0) throw failure;
  return {
    lines,
    failure,
    table: profileTable(profile),
    data: { kind: "samples", interval, samples: sampleStacks.length, dropped, functions: profile.functions() },
    files: {
      output: {
        title: "flame graph",
        content: async (name) => (await import("../../pages/flame_page.ts")).flamePageHtml(profile, name),
      },
      firefox: {
        title: "profile for profiler.firefox.com",
        content: (name) => JSON.stringify(profile.toFirefox(name)),
      },
    },
  };
}

async function countedReport(file: string, args: readonly string[], options: RunOptions): Promise<Report> {
  const { countFile } = await import("../../ops/run/count_run.ts");
  const { lines, failure, counts } = await countFile(file, args, options);
  return {
    lines,
    failure,
    table: countTables(counts).map(tableText).join("\n"),
    data: { kind: "counts", ...counts },
    files: {
      output: {
        title: "counts",
        content: async (name) => (await import("../../pages/counts_page.ts")).countsPageHtml(countTables(counts), name),
      },
    },
  };
}

function intervalOf(text = "1"): number {
  const interval = Number(text);
  if (text.trim() !== "" && interval >= 0.1 && interval <= 1000) return interval;
  throw new UsageError(`--interval ${JSON.stringify(text)} is not 0.1 to 1000 milliseconds`);
}

/** The functions with the most samples of their own. */
function profileTable(profile: Profile): string {
  const whole = profile.sampleStacks.length;
  if (whole === 0) return "waft: no samples: the program ran for less than an interval\n";
  const percent = (count: number) => (100 * count / whole).toFixed(1).padStart(6);
  const rows = profile.functions().slice(0, SHOWN).map(({ name, self, total, kind }) => {
    return `${percent(self)} ${percent(total)}  ${safe(displayName(name))}${kind === "wasm" ? "" : ` (${kind})`}\n`;
  });
  const time = (whole * profile.interval).toFixed(0);
  return `${whole} samples, ${time} ms\n own %  all %  function\n${rows.join("")}`;
}
