/**
 * C++ with exceptions, compiled by Debian's clang and libc++: with the legacy instructions and, translated by binaryen,
 * with try_table.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packageFolder } from "../support/test_packages.ts";
import { type Call, compile, type Exports, type MakeImports, program, runEverywhere } from "./both_sides.ts";

const ready = spawnSync("clang++", ["--version"]).status === 0 && existsSync("/usr/lib/wasm32-wasi/libc++abi.a");
const name = "C++ with exceptions behaves as on V8";

/** The WASI functions of a program that prints. */
const wasi: MakeImports = (say, exports) => {
  const fdWrite: Call = (_fd, list, count, written) => {
    const { buffer } = exports()["memory"] as WebAssembly.Memory;
    const view = new DataView(buffer);
    let total = 0;
    for (let i = 0; i < Number(count); i++) {
      const at = view.getUint32(Number(list) + i * 8, true), length = view.getUint32(Number(list) + i * 8 + 4, true);
      say(new TextDecoder().decode(new Uint8Array(buffer, at, length).slice()));
      total += length;
    }
    view.setUint32(Number(written), total, true);
    return 0;
  };
  const fail: Call = () => 8; // badf
  const names = [
    "environ_get",
    "environ_sizes_get",
    "fd_close",
    "fd_fdstat_get",
    "fd_seek",
    "fd_read",
    "fd_prestat_get",
  ];
  const others = [...names, "fd_prestat_dir_name", "fd_fdstat_set_flags", "path_open", "clock_time_get", "args_get"];
  return {
    wasi_snapshot_preview1: {
      ...Object.fromEntries([...others, "args_sizes_get", "random_get"].map((key) => [key, fail])),
      fd_write: fdWrite,
      proc_exit: (code) => {
        throw new Error(`exit ${code}`);
      },
    },
  };
};

function work(exports: Exports, say: (text: string) => void): void {
  (exports["_initialize"] as Call)();
  say(`= ${(exports["run"] as Call)(24)}\n`);
}

Deno.test({
  name: ready ? name : `${name} (clang++ or libc++ for wasm32 is not installed)`,
  ignore: !ready,
  fn() {
    const folder = mkdtempSync(join(tmpdir(), "waft-cxx-"));
    try {
      const file = join(folder, "out.wasm");
      const flags = ["--target=wasm32-wasi", "-mexec-model=reactor", "-O1", "-std=c++17", "-fwasm-exceptions"];
      compile("clang++", [...flags, "-Wl,--strip-debug", "-o", file, program("exceptions.cpp")]);
      const legacy = new Uint8Array(readFileSync(file));
      const text = runEverywhere(legacy, wasi, work);
      assert.match(text, /^0:\n {2}int 0\n/);
      assert.match(text, /middle took range/);
      assert.match(text, /exception instead of range/);
      assert.match(text, /both 4/);
      assert.match(text, /string text 9/);
      assert.match(text, /alive 0\n= 0\n$/);
      const wasmOpt = join(packageFolder("binaryen"), "bin/wasm-opt");
      const features = ["--enable-exception-handling", "--enable-reference-types", "--enable-bulk-memory"];
      compile("node", [wasmOpt, file, ...features, "--enable-multivalue", "--translate-to-exnref", "-o", file]);
      assert.equal(runEverywhere(new Uint8Array(readFileSync(file)), wasi, work), text, "with try_table");
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
});
