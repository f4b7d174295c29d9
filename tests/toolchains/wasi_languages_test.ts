/**
 * Programs in Go and Rust print the same compiled for WASI on waft as natively. The compilers take half a minute, so
 * the tests run only in `deno task test:toolchains`; Rust needs a compiler with the library for wasm32-wasi (Debian's
 * rustc and libstd-rust-dev-wasm32).
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { compile, program } from "./both_sides.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

/** A program's output and its status. */
function output(command: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8", timeout: 300_000 });
  if (error !== undefined) throw error;
  return `${stdout}${stderr}status ${status}`;
}

/** A Rust compiler with the library for WASI, which the default toolchain may lack. */
function rustc(): string | undefined {
  return ["rustc", "/usr/bin/rustc"].find((path) => {
    const { status, stdout } = spawnSync(path, ["--print", "target-libdir", "--target", "wasm32-wasi"], {
      encoding: "utf8",
    });
    return status === 0 && existsSync(stdout.trim());
  });
}

interface Build {
  native: (to: string) => void;
  wasi: (to: string) => void;
}

const LANGUAGES: readonly (readonly [name: string, needs: string, find: () => Build | undefined])[] = [
  ["Go", "go", () => {
    if (spawnSync("go", ["version"]).status !== 0) return undefined;
    const build = (to: string) => ["build", "-o", to, program("languages.go")];
    return {
      native: (to) => compile("go", build(to)),
      wasi: (to) => compile("env", ["GOOS=wasip1", "GOARCH=wasm", "go", ...build(to)]),
    };
  }],
  ["Rust", "rustc with wasm32-wasi", () => {
    const path = rustc();
    if (path === undefined) return undefined;
    const build = (to: string) => ["-O", "--edition", "2021", "-o", to, program("languages.rs")];
    return {
      native: (to) => compile(path, build(to)),
      wasi: (to) => compile(path, ["--target", "wasm32-wasi", ...build(to)]),
    };
  }],
];

for (const [name, needs, find] of LANGUAGES) {
  const wanted = process.env["WASM_TOOLCHAINS"] !== undefined;
  const build = wanted ? find() : undefined;
  const missing = build !== undefined ? "" : ` (${wanted ? `${needs} is not installed` : "deno task test:toolchains"})`;
  Deno.test({
    name: `${name} under WASI prints the same as natively${missing}`,
    ignore: build === undefined,
    fn() {
      const folder = mkdtempSync(join(tmpdir(), "waft-languages-"));
      try {
        const native = join(folder, "native"), module = join(folder, "program.wasm");
        build!.native(native);
        build!.wasi(module);
        const expected = output(native, []);
        assert.match(expected, /status 3$/);
        assert.equal(output(process.execPath, ["run", "-A", "--no-check", CLI, "run", module]), expected);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  });
}
