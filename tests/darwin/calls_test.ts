/**
 * WASI and plugin files on macOS's C library: the tests of both run again on a double of it (c_library.ts) and reach
 * every function of the translation; with the tests of the host they reach every line that only macOS runs (lines.ts).
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DARWIN_FUNCTIONS } from "./c_library.ts";
import { type Unreached, unreachedLines } from "./lines.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The tests of WASI that call every function; those of threads add only time. */
const WASI_TESTS = ["files", "paths", "poll", "process", "protected", "slashes", "sockets", "escape", "deadline"];

/** The tests of the code for macOS that is not about files: on doubles, or on the shared code natively. */
const HOST_TESTS = [
  "tests/darwin/host_test.ts",
  "tests/darwin/translation_test.ts",
  "engine/artifact/module_round_trip_test.ts",
  "engine/backend_arm64/process_stubs_test.ts",
  "engine/host/code/bsearch_entry_test.ts",
  "engine/host/self_check_test.ts",
  "engine/host/systems/systems_test.ts",
  "project/base/paths_test.ts",
  "project/ops/build/application_test.ts",
  "project/ops/build/machine_name_test.ts",
];

/** Functions with lines that no check reaches, with the reason. */
const UNREACHED: readonly (readonly [path: string, inFunction: string, reason: string])[] = [
  ["engine/runner/warm_up.ts", "isNeeded", "on every system: tests/runner runs it"],
];

/** Coverage in LCOV's format of what `deno` ran with `--coverage=folder`. */
function lcovOf(folder: string): string {
  // A thread that ends while Deno writes its coverage leaves an incomplete file, which `deno coverage` refuses.
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    if (name.endsWith(".json") && !readFileSync(file, "utf8").trimEnd().endsWith("}")) rmSync(file);
  }
  const { status, stdout, stderr } = spawnSync(Deno.execPath(), ["coverage", "--lcov", folder], {
    cwd: ROOT,
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  equal(status, 0, stderr);
  return stdout;
}

Deno.test({
  name: "the tests of WASI and of plugin files pass on macOS's calls; every function and line for macOS is reached",
  ignore: Deno.build.os !== "linux" || Deno.build.arch !== "x86_64",
  fn: async () => {
    const folder = await Deno.makeTempDir();
    const called = join(folder, "called");
    const run = (...args: string[]) => {
      const { status, stdout, stderr } = spawnSync(Deno.execPath(), args, {
        cwd: ROOT,
        encoding: "utf8",
        timeout: 600_000,
        env: { ...Deno.env.toObject(), NO_COLOR: "1", WAFT_DARWIN_CALLED: called },
      });
      equal(status, 0, (stdout + stderr).slice(-4000));
    };
    try {
      const preload = fileURLToPath(new URL("preload.ts", import.meta.url));
      const paths = [...WASI_TESTS.map((name) => `tests/wasi/${name}_test.ts`), "tests/plugins/kv_example_test.ts"];
      const test = ["test", "-A", "--no-check", "--quiet", "--coverage-raw-data-only"];
      const [files, host] = [join(folder, "files"), join(folder, "host")];
      run(...test, `--coverage=${files}`, "--preload", preload, ...paths);
      const names = new Set(readFileSync(called, "utf8").split("\n"));
      deepEqual(DARWIN_FUNCTIONS.filter((name) => !names.has(name)), []);
      run(...test, `--coverage=${host}`, ...HOST_TESTS);
      run("run", "-A", "--no-check", `--coverage=${host}`, "tests/darwin/dump_code.ts");
      const { all, unreached } = unreachedLines({ files: lcovOf(files), host: lcovOf(host) });
      ok(all > 700, `${all} lines for macOS`);
      const listed = (line: Unreached) =>
        UNREACHED.filter(([path, inFunction]) => path === line.path && inFunction === line.inFunction);
      const lines = unreached.map((line) => `${line.path}:${line.line}: ${line.text}`);
      deepEqual(lines.filter((_, k) => listed(unreached[k]).length === 0), []); // lines that no check reaches
      const used = new Set(unreached.flatMap(listed));
      deepEqual(UNREACHED.filter((row) => !used.has(row)), []); // rows without a line
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
