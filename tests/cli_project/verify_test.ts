/**
 * `waft verify` as a process: modules, components and artifacts, code that is not proven, refusals.
 */
import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";
import { CHILD_TIMEOUT } from "../support/host_arguments.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../../bench/wasm/matrix.wasm", import.meta.url));

function inFolder(run: (folder: string, waft: (...args: string[]) => ReturnType<typeof waftIn>) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "verify-"));
  try {
    run(folder, (...args) => waftIn(folder, args));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function waftIn(cwd: string, args: string[]): { status: number | null; stdout: string; stderr: string } {
  const env = { ...process.env, WAFT_HOME: join(cwd, "home") };
  const options = { cwd, encoding: "utf8", timeout: CHILD_TIMEOUT, env } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [...hostArguments(CLI), ...args], options);
  return { status, stdout, stderr };
}

const COMPONENT = `(component
  (core module (func (param i32) (result i32) (local.get 0)))
  (component (core module (func $f) (func $g))))`;

Deno.test("each core module and tier is verified", () => {
  inFolder((folder, waft) => {
    writeFileSync(join(folder, "c.wat"), COMPONENT);
    assert.deepEqual(waft("verify", "c.wat"), {
      status: 0,
      stdout: "c.wat: module 0, optimizing: 1 function proven\nc.wat: module 0, baseline: 1 function proven\n" +
        "c.wat: module 1, optimizing: 2 functions proven\nc.wat: module 1, baseline: 2 functions proven\n",
      stderr: "",
    });
    const { data: { kind, codes } } = JSON.parse(waft("verify", "--tier", "baseline", "--json", "c.wat").stdout);
    assert.equal(kind, "component");
    assert.deepEqual(codes.map(({ module, tier, bounds }: Record<string, unknown>) => [module, tier, bounds]), [
      [0, "baseline", "guard"],
      [1, "baseline", "guard"],
    ]);
  });
});

Deno.test("a function that is not proven is named, with status 1", () => {
  inFolder((folder, waft) => {
    copyFileSync(PROGRAM, join(folder, "matrix.wasm"));
    const options = ["--bounds", "explicit", "--tier", "optimizing", "matrix.wasm"];
    const { status, stdout } = waft("verify", ...options);
    assert.equal(status, 1);
    const [, index, offset] = /^ {2}function (\d+).* at offset (\d+): an access to memory without a proven bound$/m
      .exec(stdout) ?? assert.fail(stdout);
    const found = waft("verify", "--json", ...options);
    const { ok, data: { codes: [{ functions, provable, recompiled, unproven }] }, diagnostics } = JSON.parse(
      found.stdout,
    );
    assert.equal(found.status, 1);
    assert.equal(ok, false);
    assert(stdout.includes(`${functions - 1} of ${functions} functions proven`));
    assert.match(
      stdout,
      /\n {2}An engine with the option verify: "code" compiles this function once more, to proven code with more checks\.\n$/,
    );
    assert.deepEqual([provable, recompiled], [true, 1]);
    assert.deepEqual([unproven[0].index, unproven[0].offset], [Number(index), Number(offset)]);
    assert.equal(diagnostics[0].code, "verify.unproven");
  });
});

Deno.test("artifacts for both processors are verified; a damaged one is refused", () => {
  inFolder((folder, waft) => {
    copyFileSync(PROGRAM, join(folder, "m.wasm"));
    assert.equal(waft("compile", "--target", "linux/x64", "m.wasm", "-o", "m.x64").status, 0);
    const proven = waft("verify", "m.x64");
    assert.deepEqual([proven.status, proven.stderr], [0, ""]);
    assert.match(proven.stdout, /^m\.x64: optimizing: \d+ functions proven\n$/);
    assert.equal(waft("compile", "--target", "linux/arm64", "m.wasm", "-o", "m.arm64").status, 0);
    const other = waft("verify", "m.arm64");
    assert.deepEqual([other.status, other.stderr], [0, ""]);
    assert.match(other.stdout, /^m\.arm64: optimizing: \d+ functions proven\n$/);
    const bytes = readFileSync(join(folder, "m.x64"));
    bytes[bytes.length >> 1] ^= 1;
    writeFileSync(join(folder, "bad"), bytes);
    const bad = waft("verify", "bad");
    assert.equal(bad.status, 1);
    assert.match(bad.stderr, /damaged/);
    assert.match(waft("verify", "none").stderr, /none/);
  });
});
