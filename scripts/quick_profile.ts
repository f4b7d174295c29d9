/**
 * Which functions of the module of quick runs are called when programs start. In: a bundle's files. Out: where those functions stand in the module's text,
 * as V8 counts calls when Deno is told to. The bundle runs on this machine, with directories of its own.
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

/** What V8 says of a script. */
interface Coverage {
  readonly url: string;
  readonly functions: readonly {
    /** The whole function first. */
    readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[];
  }[];
}

/** The functions of `quick` that the samples call, where `files` are a bundle's and `entry` and `quick` two modules of it. */
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
      runSample(scratch, entry, sample, module); // fills the cache
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
    throw new Error(`the bundle does not run "${sample.name}": status ${status}, "${stdout}"\n${stderr}`);
  }
}

/** Adds the functions that were called. */
function addCalled(called: Set<string>, counts: string, quick: string): void {
  const scripts = readdirSync(counts).map((name) => JSON.parse(readFileSync(join(counts, name), "utf8")) as Coverage);
  // The entry and the module, and nothing of the compiler.
  const script = scripts.find(({ url }) => url.endsWith(`/${quick}`));
  if (script === undefined || scripts.length > 2) throw new Error("the bundle's quick run is not quick: it loads more");
  for (const { ranges: [whole] } of script.functions) {
    if (whole!.count > 0) called.add(`${whole!.startOffset} ${whole!.endOffset}`);
  }
}
