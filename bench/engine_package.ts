/**
 * The engine's npm package, as programs get it: bundled, with its compilers as machine code. In: this tree. Out: the
 * package in a folder's `node_modules`, for processes that measure what people meet first. A checkout has many modules
 * in place of a few, and no machine code.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** Builds the package, and unpacks it into `node_modules` of `folder`. Throws an Error if that fails. */
export function installEngine(folder: string): void {
  const scratch = mkdtempSync(join(tmpdir(), "waft-package-"));
  try {
    const script = fileURLToPath(new URL("../scripts/package/build_npm.ts", import.meta.url));
    const args = ["run", "-A", "--no-check", "--quiet", script, "--out", scratch, "--package", "engine"];
    const archive = execFileSync(process.execPath, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })
      .trim();
    const target = join(folder, "node_modules/@waft/engine");
    mkdirSync(target, { recursive: true });
    const { status } = spawnSync("tar", ["xzf", archive, "--strip-components=1", "-C", target]);
    if (status !== 0) throw new Error(`cannot unpack ${archive}`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The programs in this folder that processes run, and their modules. */
const PROGRAMS = ["first_child.ts", "warm_up_child.ts", "peak_memory.ts"];

/** Runs a program of PROGRAMS with `args`; returns the last line of its output, which is JSON. */
export type RunProgram = (program: string, args: readonly string[]) => unknown;

/** Runs `action` with a function that runs programs which import the package. */
export function withEnginePackage(action: (run: RunProgram) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "waft-bench-"));
  try {
    installEngine(folder);
    for (const name of PROGRAMS) copyFileSync(fileURLToPath(new URL(name, import.meta.url)), join(folder, name));
    const host = ["run", "-A", "--no-check", "--quiet", "--no-config", "--node-modules-dir=manual"];
    action((program, args) => {
      const output = execFileSync(process.execPath, [...host, join(folder, program), ...args], {
        cwd: folder,
        stdio: ["ignore", "pipe", "pipe"],
        timeout: 300_000,
      });
      return JSON.parse(output.toString().trim().split("\n").at(-1) ?? "");
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
