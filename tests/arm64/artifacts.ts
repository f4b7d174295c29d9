/**
 * Cross-compiled artifacts of the benchmark programs, made on one host and run on another: `artifacts.ts make FOLDER
 * COUNT` compiles the first COUNT programs for both processors, with and without their optional instructions, in both
 * bounds modes, and writes the artifacts to FOLDER. `artifacts.ts run FOLDER` loads those for this machine, runs them
 * and compares the results with V8's. `artifacts.ts make FOLDER COUNT run FOLDER` does both.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { PROGRAMS } from "../../bench/programs.ts";
import { currentHost } from "../../engine/host/current.ts";
import { type EngineOptions, type Machine, NewEngine } from "../../engine/mod.ts";

const MACHINES: Readonly<Record<string, Machine>> = {
  "x64-avx2": { os: "linux", arch: "x64", cpu: ["avx", "avx2", "bmi1", "bmi2", "lzcnt", "popcnt"] },
  "x64": { os: "linux", arch: "x64" },
  "arm64-lse": { os: "linux", arch: "arm64", cpu: ["lse"] },
  "arm64": { os: "linux", arch: "arm64" },
};
const MODES: Readonly<Record<string, EngineOptions>> = {
  guard: { bounds: "guard" },
  explicit: { bounds: "explicit" },
  control: { interruptible: true, fuel: true },
};

const source = (name: string) => readFileSync(new URL(`../../bench/wasm/${name}.wasm`, import.meta.url));

/** A small fraction of the benchmark's work, since the run is emulated. */
const argument = (n: number) => Math.ceil(n / 12);

/** Programs without imports. */
function programs() {
  return PROGRAMS.filter(({ name }) => WebAssembly.Module.imports(new WebAssembly.Module(source(name))).length === 0);
}

async function make(folder: string, count: number): Promise<void> {
  let made = 0;
  for (const { name } of programs().slice(0, count)) {
    for (const [machineName, machine] of Object.entries(MACHINES)) {
      for (const [mode, options] of Object.entries(MODES)) {
        const artifact = await NewEngine(options).compileFor(machine, source(name));
        writeFileSync(join(folder, `${name}.${mode}.${machineName}`), artifact);
        made++;
      }
    }
  }
  console.log(`made: ${made}`);
}

function run(folder: string): number {
  const { arch } = currentHost();
  let [ran, different, refused] = [0, 0, 0];
  for (const file of readdirSync(folder).sort()) {
    const [name, mode, machineName] = file.split(".") as [string, string, string];
    const { n } = PROGRAMS.find((program) => program.name === name)!;
    if (MACHINES[machineName].arch !== arch) continue;
    const instance = new WebAssembly.Instance(new WebAssembly.Module(source(name)));
    const expected = (instance.exports["run"] as (n: number) => unknown)(argument(n));
    let actual: unknown;
    try {
      const module = NewEngine(MODES[mode]).load(readFileSync(join(folder, file)));
      actual = module.instantiate().call({}, "run", argument(n));
    } catch (error) {
      // The artifact requires instructions that this processor lacks.
      if (!/needs a processor with/.test((error as Error).message)) throw error;
      refused++;
      continue;
    }
    ran++;
    if (Object.is(actual, expected)) continue;
    different++;
    console.log(`${file}: expected ${expected}, got ${actual}`);
  }
  console.log(`ran: ${ran}, different: ${different}, refused: ${refused}`);
  return different;
}

const args = process.argv.slice(2);
if (args[0] === "make") {
  const [, folder, count] = args.splice(0, 3);
  await make(folder, Number(count));
}
if (args[0] === "run" && run(args[1]) > 0) process.exit(1);
