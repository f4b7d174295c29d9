/**
 * Profiles the start-up of programs: which functions of the quick-run module are called. In: the files of a bundle.
 * Out: the positions of those functions in the module's text, from V8's coverage counts. The bundle runs on this
 * machine, in temporary directories.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { encodeModule } from "../engine/binary/encode.ts";
import { parseModule } from "../engine/text/parse_module.ts";
import type { Chosen } from "./eager_functions.ts";
import { QUICK_SAMPLES, type QuickSample } from "./quick_samples.ts";

/** V8's coverage report for a script. */
interface Coverage {
  readonly url: string;
  readonly functions: readonly {
    /** The whole function first. */
    readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[];
  }[];
}

/**
 * The functions of `quick` that the samples call; `files` are a bundle's files, `entry` and `quick` two of its modules.
 */
export function functionsThatRun(files: ReadonlyMap<string, Uint8Array>, entry: string, quick: string): Chosen {
  const scratch = mkdtempSync(join(tmpdir(), "waft-profile-"));
  try {
    for (const [path, bytes] of files) {
      mkdirSync(dirname(join(scratch, path)), { recursive: true });
      writeFileSync(join(scratch, path), bytes);
    }
    const called = new Set<string>();
    for (const [k, sample] of QUICK_SAMPLES.entries()) {
      const module = join(scratch, `${sample.name}.wasm`);
      writeFileSync(module, encodeModule(parseModule(sample.text)));
      // Fills the cache of compiled modules: `auto` stores nothing for a short first run.
      runSample(scratch, entry, { ...sample, options: ["--tier", "optimizing", ...sample.options] }, module);
      const counts = join(scratch, `counts${k}`);
      runSample(scratch, entry, sample, module, counts);
      addCalled(called, counts, quick);
    }
    return (start, end) => called.has(`${start} ${end}`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function runSample(scratch: string, entry: string, sample: QuickSample, module: string, counts?: string): void {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      ...["run", "-A", "--quiet", "--no-config", "--no-lock", "--no-check", "--no-remote", "--no-npm"],
      ...(counts === undefined ? [] : [`--coverage=${counts}`]),
      ...[join(scratch, entry), "run", ...sample.options, module, ...sample.args],
    ],
    {
      encoding: "utf8",
      cwd: scratch,
      env: { ...process.env, NO_COLOR: "1", WAFT_HOME: join(scratch, "home"), DENO_DIR: join(scratch, "deno") },
    },
  );
  if (status !== 0 || stdout !== sample.output) {
    throw new Error(`the bundle fails on the sample "${sample.name}": status ${status}, "${stdout}"\n${stderr}`);
  }
}

/** Adds the called functions to `called`, as "start end". */
function addCalled(called: Set<string>, counts: string, quick: string): void {
  const scripts = readdirSync(counts).map((name) => JSON.parse(readFileSync(join(counts, name), "utf8")) as Coverage);
  // A quick run loads the entry and the module, but not the compiler.
  const script = scripts.find(({ url }) => url.endsWith(`/${quick}`));
  if (script === undefined || scripts.length > 2) throw new Error("the bundle's quick run loads more than two modules");
  for (const { ranges: [whole] } of script.functions) {
    if (whole.count > 0) called.add(`${whole.startOffset} ${whole.endOffset}`);
  }
}
