/**
 * `waft profile [options] FILE [ARG…]`: runs a program and says where its time goes: a table on the standard error
 * stream, a page with a flame graph, a file for the Firefox profiler. The program's own output and status are those of
 * `waft run --bare`.
 */
import { writeText } from "@waft/engine/internal/host/process";
import type { Profile } from "@waft/engine";
import type { Command } from "commander";
import { basename } from "node:path";
import { oneLine, UsageError } from "../base/failure.ts";
import { safe } from "../base/terminal.ts";
import { controlledEngine } from "./control_flags.ts";
import { engineOptions } from "./engine_options.ts";
import { addOptions, type OptionRow } from "./option_rows.ts";
import { guestInputs, networkOptions, RUN_OPTION_ROWS, type RunFlags } from "./run_flags.ts";

interface ProfileFlags extends RunFlags {
  readonly output?: string;
  readonly firefox?: string;
  readonly interval?: string;
}

/** Options of `waft run` that make no sense here: projects, the cache, other reports. */
const LEFT_OUT =
  /^--(project|bare|no-cache|perf-map|coredump|explain-compile|locked|trust|allow-path-plugins|offline)\b/;

const PROFILE_ROWS: readonly OptionRow[] = [
  { flags: "--output <page>", description: "Write a page with a flame graph" },
  { flags: "--firefox <file>", description: "Write a profile that the Firefox profiler opens (profiler.firefox.com)" },
  { flags: "--interval <ms>", description: "Milliseconds between samples, 0.1 to 1000 (default: 1)" },
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
    const interval = intervalOf(flags.interval);
    if (flags.unknownImports !== undefined && flags.unknownImports !== "trap") {
      throw new UsageError(`--unknown-imports takes trap, not "${flags.unknownImports}"`);
    }
    const [{ profileFile }, { planFile }] = await Promise.all([
      import("../ops/profile.ts"),
      import("../base/replace_file.ts"),
    ]);
    const plan = (path: string | undefined) => path === undefined ? undefined : { path, write: planFile(path) };
    const files = { output: plan(flags.output), firefox: plan(flags.firefox) };
    const { lines, failure, profile } = await profileFile(file, args, {
      engine: controlledEngine(engineOptions(flags), flags),
      allowPrecompiled: flags.allowPrecompiled === true,
      ...(flags.invoke === undefined ? {} : { invoke: flags.invoke }),
      ...(flags.net.length + flags.listen.length === 0 ? {} : { network: networkOptions(flags) }),
      ...(flags.unknownImports === undefined ? {} : { unknownImports: "trap" as const }),
      ...guestInputs(flags),
    }, interval);
    if (lines.length > 0) writeText(1, lines.join("\n") + "\n");
    // A program that could not start has no profile.
    if (failure === undefined || profile.sampleStacks.length > 0) await writeProfile(file, profile, files);
    if (failure !== undefined) throw failure;
  });
}

function intervalOf(text = "1"): number {
  const interval = Number(text);
  if (text.trim() !== "" && interval >= 0.1 && interval <= 1000) return interval;
  throw new UsageError(`--interval ${JSON.stringify(text)} is not 0.1 to 1000 milliseconds`);
}

/** A file to write after the run. */
interface PlannedFile {
  readonly path: string;
  readonly write: (content: string) => void;
}

interface PlannedFiles {
  readonly output: PlannedFile | undefined;
  readonly firefox: PlannedFile | undefined;
}

async function writeProfile(file: string, profile: Profile, { output, firefox }: PlannedFiles): Promise<void> {
  const name = basename(file);
  writeText(2, profileTable(profile));
  if (output !== undefined) {
    const { flamePageHtml } = await import("../pages/flame_page.ts");
    output.write(flamePageHtml(profile, name));
    writeText(2, `${oneLine(output.path)}: flame graph\n`);
  }
  if (firefox !== undefined) {
    firefox.write(JSON.stringify(profile.toFirefox(name)));
    writeText(2, `${oneLine(firefox.path)}: profile for profiler.firefox.com\n`);
  }
}

/** The functions with the most samples of their own. */
function profileTable(profile: Profile): string {
  const whole = profile.sampleStacks.length;
  if (whole === 0) return "waft: no samples: the program ran for less than an interval\n";
  const percent = (count: number) => (100 * count / whole).toFixed(1).padStart(6);
  const rows = profile.functions().slice(0, SHOWN).map(({ name, self, total, kind }) => {
    return `${percent(self)} ${percent(total)}  ${safe(name)}${kind === "wasm" ? "" : ` (${kind})`}\n`;
  });
  const time = (whole * profile.interval).toFixed(0);
  return `${whole} samples, ${time} ms\n own %  all %  function\n${rows.join("")}`;
}
