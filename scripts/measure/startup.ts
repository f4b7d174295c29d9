/**
 * Measures the start-up time of the command, relative to Deno's start of an empty script:
 * `deno task startup [--runs N] [--home DIR]`.
 *
 * Builds a bundle of this tree and lays it out in a temporary home as the installer does (or uses the installation in
 * DIR), fills the caches, then runs in turn: the empty script, `waft --version`, the smallest module on V8 and, without
 * the cache, on waft, and `waft run` of small modules (quick_samples.ts) through the launcher. Out: for each row the
 * processor time (user and system, including the shell) as a mean and the wall-clock time as a median, each with the
 * ratio to the empty script.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { median, processorTimes } from "../../bench/measure.ts";
import { encodeModule } from "../../engine/binary/encode.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { VERSION } from "../../project/base/version_string.ts";
import { QUICK_SAMPLES } from "../package/quick_samples.ts";
import { progress, readTaskLine } from "../task_options.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** The first sample on the host's WebAssembly. */
const V8_RUN = `const bytes = Deno.readFileSync(new URL("nothing.wasm", import.meta.url));
new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports._start();
`;
/** Runs that fill the caches: Deno writes them in the background. */
const WARM_UP = 4;

/** Lays out `home` as the installer does, with this tree as the active version. */
function install(home: string): void {
  const version = join(home, "versions", VERSION);
  const { status } = spawnSync(
    process.execPath,
    ["run", "-A", "--quiet", join(ROOT, "scripts/package/release.ts"), "--here", version],
    { cwd: ROOT, stdio: "inherit" },
  );
  if (status !== 0) throw new Error("the bundle could not be built");
  mkdirSync(join(home, "state"), { recursive: true });
  writeFileSync(join(version, "receipt.json"), "{}");
  writeFileSync(join(home, "state", "active.json"), JSON.stringify({ schemaVersion: 1, current: VERSION }));
  copyFileSync(join(ROOT, "installer/launcher.sh"), join(home, "waft"));
  chmodSync(join(home, "waft"), 0o755);
}

interface Row {
  readonly name: string;
  readonly command: readonly string[];
  readonly wall: number[];
  cpu: number;
}

function runOnce({ command, wall }: Row, env: NodeJS.ProcessEnv): void {
  const start = performance.now();
  const { status, stderr } = spawnSync(command[0], command.slice(1), { env, cwd: ROOT, encoding: "utf8" });
  wall.push(performance.now() - start);
  if (status !== 0) throw new Error(`${command.join(" ")} failed: ${stderr}`);
}

const task = {
  name: "task startup",
  about: "Measures the start-up time of the installed command, relative to Deno's start of an empty script.",
  options: {
    runs: { value: "N", least: 1, help: "number of starts of each command", default: "40" },
    home: { value: "DIR", help: "an existing installation to measure instead of this tree" },
  },
} as const;
const { values: { runs, home: installed } } = readTaskLine(task);
const scratch = mkdtempSync(join(tmpdir(), "waft-startup-"));
try {
  const home = installed ?? join(scratch, "home");
  if (installed === undefined) install(home);
  const place = join(scratch, "place");
  mkdirSync(place);
  writeFileSync(join(place, "empty.js"), "");
  writeFileSync(join(place, "v8.js"), V8_RUN);
  for (const { name, text } of QUICK_SAMPLES) {
    writeFileSync(join(place, `${name}.wasm`), encodeModule(parseModule(text)));
  }
  const waft = join(home, "waft");
  const row = (name: string, ...command: string[]): Row => ({ name, command, wall: [], cpu: 0 });
  const rows = [
    row("deno run empty.js", join(home, "versions", VERSION, "deno"), "run", "-A", join(place, "empty.js")),
    row("waft --version", waft, "--version"),
    row("V8 nothing.wasm", join(home, "versions", VERSION, "deno"), "run", "-A", join(place, "v8.js")),
    row("waft, no cache, nothing", waft, "run", "--no-cache", "--bare", join(place, "nothing.wasm")),
    ...QUICK_SAMPLES.map(({ name, options, args }) =>
      row(`waft run ${name}.wasm`, waft, "run", ...options, join(place, `${name}.wasm`), ...args)
    ),
  ];
  const { WAFT_RUNTIME: _, DENO_DIR: __, ...inherited } = process.env;
  const env = { ...inherited, WAFT_HOME: home, DENO_NO_UPDATE_CHECK: "1" };
  for (let k = 0; k < WARM_UP; k++) for (const each of rows) runOnce(each, env);
  for (const each of rows) each.wall.length = 0;
  for (let k = 0; k < runs; k++) {
    progress(`${k} of ${runs} rounds`);
    for (const each of rows) {
      const before = processorTimes("self").children; // too coarse for one run, accurate over many
      runOnce(each, env);
      each.cpu += processorTimes("self").children - before;
    }
  }
  progress("");
  const [empty] = rows as [Row];
  console.log(`${"".padEnd(24)}${["cpu ms", "ratio", "wall ms", "ratio"].map((title) => title.padStart(9)).join("")}`);
  for (const { name, wall, cpu } of rows) {
    const cells = [
      (cpu / runs).toFixed(1),
      (cpu / empty.cpu).toFixed(2),
      median(wall).toFixed(1),
      median(wall.map((ms, k) => ms / empty.wall[k])).toFixed(2),
    ];
    console.log(name.padEnd(24) + cells.map((cell) => cell.padStart(9)).join(""));
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
