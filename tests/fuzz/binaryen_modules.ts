/**
 * Random modules from binaryen's `wasm-opt --translate-to-fuzz`, generated in this process: the tool's script is loaded
 * once and its main function called for every module. In: a seed and features. Out: one binary module.
 *
 * The tool takes files by name, so one input and one output file in a temporary folder are overwritten repeatedly.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packageFolder } from "../support/test_packages.ts";
import type { ModuleSource } from "./compare.ts";
import { Random } from "./random.ts";

/** binaryen's flags for our features. */
const FLAGS: Readonly<Record<string, readonly string[]>> = {
  "exception-handling": ["--enable-exception-handling"],
  "memory64": ["--enable-memory64"],
  "multi-memory": ["--enable-multimemory"],
  "simd": ["--enable-simd"],
  "threads": ["--enable-threads"],
  "tail-call": ["--enable-tail-call"],
  "bulk-memory-operations": ["--enable-bulk-memory", "--enable-bulk-memory-opt"],
  "extended-const-expressions": ["--enable-extended-const"],
  "multi-value": ["--enable-multivalue"],
  "mutable-global": ["--enable-mutable-globals"],
  "nontrapping-float-to-int-conversion": ["--enable-nontrapping-float-to-int"],
  "reference-types": ["--enable-reference-types"],
  "sign-extension-ops": ["--enable-sign-ext"],
};

/** The features that binaryen's modules may use. */
export const BINARYEN_FEATURES: readonly string[] = Object.keys(FLAGS);

type Main = (args: string[]) => unknown;

/** Generates modules until it is closed. */
export class BinaryenModules implements ModuleSource {
  readonly #main: Main;
  readonly #folder: string;

  private constructor(main: Main, folder: string) {
    this.#main = main;
    this.#folder = folder;
  }

  static async open(): Promise<BinaryenModules> {
    const path = join(packageFolder("binaryen"), "bin/wasm-opt");
    const source = readFileSync(path, "utf8").replace(/^#!.*\n/, "\n");
    const hooks: { callMain?: Main } = {};
    await new Promise<void>((resolve) => {
      const Module = {
        noInitialRun: true,
        noExitRuntime: true,
        print() {},
        printErr() {},
        onRuntimeInitialized: resolve,
      };
      const load = new Function(
        "Module",
        "require",
        "__filename",
        "__dirname",
        "module",
        "hooks",
        `${source}\n;hooks.callMain = callMain;`,
      );
      load(Module, createRequire(path), path, tmpdir(), { exports: {} }, hooks);
    });
    return new BinaryenModules(hooks.callMain!, mkdtempSync(join(tmpdir(), "waft-fuzz-")));
  }

  /** The module of a seed. Without `nans`, the tool adds code that replaces every NaN by zero. */
  module(seed: number, features: readonly string[], nans: boolean): Uint8Array<ArrayBuffer> {
    const random = new Random(seed);
    const length = random.chance(20) ? random.between(4000, 16000) : random.between(300, 4000);
    const input = new Uint8Array(length);
    for (let i = 0; i < length; i++) input[i] = random.bits();
    const from = join(this.#folder, "in");
    const to = join(this.#folder, "out");
    writeFileSync(from, input);
    const make = (passes: readonly string[]) =>
      this.#main([
        from,
        "-q",
        "-ttf",
        "--mvp-features",
        ...features.flatMap((name) => FLAGS[name] ?? []),
        ...(nans ? [] : ["--denan"]),
        // V8 accepts only one form of exceptions per module, and this tool generates both.
        ...(features.includes("exception-handling") ? ["--emit-exnref"] : []),
        ...passes,
        "-o",
        to,
      ]);
    rmSync(to, { force: true });
    try {
      make(random.chance(10) ? [random.pick(["-O1", "-O2", "-O3", "-Os", "--flatten"])] : []);
    } catch { // its optimizer sometimes rejects its generator's output
    }
    if (!existsSync(to)) make([]);
    return new Uint8Array(readFileSync(to));
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
