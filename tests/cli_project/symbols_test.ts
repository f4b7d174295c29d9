/**
 * Programs with symbols of Rust: every command that shows functions shows their paths, accepts these and the symbols,
 * and `--json` keeps the symbols.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";
import { removeFolder } from "../support/remove_folder.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

const LEGACY = "_ZN4shop14Price$LT$T$GT$10reciprocal17h788faea74b05752aE";
const V0 = "_RINvMNtCskFybzSCucbF_4shop4cartNtB3_4Cart5totalhEB5_";
const HALF = "shop::main::h0123456789abcdef";

const PROGRAM = `(module
  (memory (export "memory") 1)
  (func $"${LEGACY}" (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))
  (func $"${V0}" (param i32) (result i32) (call $"${LEGACY}" (local.get 0)))
  (func $"${HALF}" (export "f") (param i32) (result i32) (call $"${V0}" (local.get 0))))`;

const PATHS = ["shop::Price<T>::reciprocal", "<shop::cart::Cart>::total::<u8>", "shop::main"];

Deno.test("symbols of Rust are shown as paths in traps, dumps, sizes, pages and counts, and stay in --json", () => {
  const folder = mkdtempSync(join(tmpdir(), "symbols-"));
  const waft = (args: readonly string[], input = "") => {
    const { stdout, stderr, status } = spawnSync(process.execPath, [...hostArguments(CLI), ...args], {
      cwd: folder,
      encoding: "utf8",
      input,
      env: { ...process.env, WAFT_HOME: join(folder, "home") },
    });
    return { text: stdout + stderr, stdout, status };
  };
  const showsPaths = (text: string) => {
    for (const path of PATHS) assert.ok(text.includes(path), `${path} in ${text}`);
    assert.doesNotMatch(text, /_ZN|_RI|h0123/);
  };
  try {
    writeFileSync(join(folder, "shop.wat"), PROGRAM);
    assert.equal(waft(["parse", "shop.wat", "-o", "shop.wasm"]).status, 0);
    showsPaths(waft(["run", "--coredump", "core", "--invoke", "f", "shop.wasm", "0"]).text.replace(/core dump.*/, ""));
    showsPaths(waft(["inspect", "core"]).text);
    assert.ok(waft(["inspect", "--json", "core"]).stdout.includes(V0));
    showsPaths(waft(["inspect", "shop.wasm"]).text);
    assert.ok(waft(["inspect", "--json", "shop.wasm"]).stdout.includes(LEGACY));
    showsPaths(waft(["profile", "--counts", "--invoke", "f", "shop.wasm", "1"]).text);
    showsPaths(waft(["run", "--explain-compile", "--invoke", "f", "shop.wasm", "1"]).text);
    for (const name of ["Cart>::total", V0]) {
      assert.equal(
        waft(["explore", "--function", name, "-o", "page.html", "shop.wasm"]).text,
        "page.html: 1 of 3 functions\n",
      );
    }
    const page = readFileSync(join(folder, "page.html"), "utf8");
    assert.match(page, /shop::cart::Cart(?:>|&gt;|\\u003e)::total/);
    assert.doesNotMatch(page, /_ZN4shop|_RINv/);
    for (const name of [LEGACY, PATHS[0], "total", "main", HALF]) {
      const { text } = waft(["debug", "--invoke", "f", "shop.wasm", "1"], `break ${name}\nrun\nbt\nquit\n`);
      assert.match(text, /\(waft\) run\n#0 <?shop::/);
      assert.doesNotMatch(text.replace(name, ""), /_ZN|_RI|h0123/);
    }
  } finally {
    removeFolder(folder);
  }
});
