/**
 * Runs a toolchain's output on V8 and on waft, in every bounds mode. In: a module, its imports, and work for its
 * exports. Out: the text of the run, which must be the same everywhere. Also locates the toolchains: WASM_TOOLCHAINS,
 * else tests/toolchains.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { type EngineOptions, NewEngine } from "../../engine/api/engine.ts";

export type Call = (...args: unknown[]) => unknown;
export type Exports = Readonly<Record<string, unknown>>;
type Imports = Record<string, Record<string, Call>>;
/**
 * Creates the imports of one run; `say` appends to its text, `exports` returns the instance's exports during the run.
 */
export type MakeImports = (say: (text: string) => void, exports: () => Exports) => Imports;

const CONFIGURATIONS: readonly EngineOptions[] = [{ verify: true }, { bounds: "explicit", verify: true }];

/** Runs the module everywhere; returns the text, which is the same on V8 and on waft. */
export function runEverywhere(
  bytes: Uint8Array<ArrayBuffer>,
  imports: MakeImports,
  work: (exports: Exports, say: (text: string) => void) => void,
): string {
  const run = (instantiate: (imports: Imports) => Exports): string => {
    let text = "";
    let exports: Exports = {};
    const say = (more: string) => void (text += more);
    exports = instantiate(imports(say, () => exports));
    work(exports, say);
    return text;
  };
  const expected = run((i) =>
    new WebAssembly.Instance(new WebAssembly.Module(bytes), i as unknown as WebAssembly.Imports).exports
  );
  for (const options of CONFIGURATIONS) {
    const engine = NewEngine(options);
    assert.equal(run((i) => engine.compile(bytes).instantiate({}, i).exports), expected, JSON.stringify(options));
  }
  return expected;
}

/** The path of an npm package below the toolchains' folder; undefined if it is not installed. */
export function npmTool(name: string): string | undefined {
  const root = process.env["WASM_TOOLCHAINS"] ?? fileURLToPath(new URL(".", import.meta.url));
  const path = `${root}/node_modules/${name}`;
  return existsSync(path) ? path : undefined;
}

/** The reason why the test of `tool` does not run. */
export function missing(tool: string): string {
  return `${tool} is not installed (tests/toolchains/install.sh)`;
}

/** The path of a source in programs/. */
export function program(name: string): string {
  return fileURLToPath(new URL(`programs/${name}`, import.meta.url));
}

/** Runs a compiler; a failure reports its output. */
export function compile(command: string, args: readonly string[]): void {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8" });
  if (error !== undefined) throw error;
  assert.equal(status, 0, `${command} ${args.join(" ")}\n${stdout}${stderr}`);
}
