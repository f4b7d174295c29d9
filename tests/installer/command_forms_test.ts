/**
 * The forms in which the command is delivered answer alike: the checkout, the bundle of a release, the npm package on
 * Node, and the single executable. In: one table of command lines. Builds each form, with Node's npm and Bun from npm,
 * so it runs only when WAFT_TEST_INSTALLER is `whole` (`deno task test:installer`).
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { platformName } from "../../project/base/paths.ts";
import { VERSION } from "../../project/base/version_string.ts";
import { buildNpm } from "../../scripts/package/build_npm.ts";
import { buildBundle } from "../../scripts/package/release_bundle.ts";
import { buildSingles } from "../../scripts/package/single.ts";
import { copyTree } from "../../scripts/package/tree_copy.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const WHOLE = process.env["WAFT_TEST_INSTALLER"] === "whole";

const FILES: Readonly<Record<string, string>> = {
  "add.wat": `(module (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))`,
  "trap.wat": `(module (func $inner unreachable) (func (export "f") (call $inner)))`,
  "invalid.wat": `(module (func (result i32)))`,
  "hello.wat": `(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "\\10\\00\\00\\00\\06\\00\\00\\00")
    (data (i32.const 16) "hello\\n")
    (func (export "_start")
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
      (call $exit (i32.const 7))))`,
  "component.wat": `(component (core module $m (func (export "f") (result i32) i32.const 42))
    (core instance $i (instantiate $m))
    (func (export "answer") (result u32) (canon lift (core func $i "f"))))`,
};

/** Command line, status, and output, both streams together. Later lines see the files of earlier ones. */
const LINES: readonly (readonly [line: string, status: number, says: RegExp])[] = [
  ["--version", 0, new RegExp(`^${VERSION.replaceAll(".", "\\.")}`)],
  ["", 2, /^Usage: waft \[options\] <command>\n {7}waft <file> \[args\.\.\.\]\n/],
  ["--help", 0, /^Usage: waft \[options\] <command>\n[^]*\n {2}run {2,}\S/],
  ["help", 0, /^Usage: waft \[options\] <command>\n/],
  ["help run", 0, /^Usage: waft run \[options\] <file> \[args\.\.\.\]\n/],
  ["run --help", 0, /^Usage: waft run \[options\] <file> \[args\.\.\.\]\n/],
  ["help component new", 0, /^Usage: waft component new /],
  ["component --help", 0, /^Usage: waft component /],
  ["help registry serve", 0, /^Usage: waft registry serve /],
  ["help self install", 0, /^Usage: waft self install /],
  ["help compile", 0, /^Usage: waft compile /],
  ["help nothing", 2, /nothing/],
  ["add.wat 2 40", 0, /^42\n$/],
  ["./add.wat 2 40", 0, /^42\n$/],
  ["run add.wat 2 40", 0, /^42\n$/],
  ["run --invoke add add.wat 50 -8", 0, /^42\n$/],
  ["run --bare --no-cache --invoke add add.wat 0x20 10", 0, /^42\n$/],
  ["run add.wat 2", 2, /^waft: add\.wat: "add" takes 2 arguments, not 1\n$/],
  ["hello.wat", 7, /^hello\n$/],
  ["run hello.wat", 7, /^hello\n$/],
  ["trap.wat", 134, /^waft: trap\.wat: trap: unreachable\n {4}at inner \(1:\d+\)\n {4}at f/],
  ["run --invoke answer() component.wat", 0, /^42\n$/],
  ["validate add.wat component.wat", 0, /^$/],
  ["validate invalid.wat", 1, /^waft: invalid\.wat:1:\d+: type mismatch/],
  ["parse add.wat -o add.wasm", 0, /^$/],
  ["add.wasm 2 40", 0, /^42\n$/],
  ["print add.wasm", 0, /^\(module\n[^]*i32\.add/],
  ["inspect add.wasm", 0, /\badd\b/],
  ["inspect --json add.wasm", 0, /^\{"schemaVersion":1,"command":"inspect","ok":true,.*"kind":"core module"/],
  ["compile add.wasm -o add.waft", 0, /^$/],
  ["run add.waft 2 40", 2, /--allow-precompiled/],
  ["run --allow-precompiled add.waft 2 40", 0, /^42\n$/],
  ["inspect add.waft", 0, /artifact/],
  ["run missing.wasm", 1, /^waft: missing\.wasm: no such file or directory\n$/],
  ["rnu add.wat", 2, /\brun\b/],
  ["run --nothing add.wat", 2, /--nothing/],
  ["features", 0, /\bsimd\b/],
  ["opts", 0, /\binline\b/],
];

/** A program and the arguments before those of the command. */
type Form = readonly [program: string, ...args: string[]];

function write(folder: string, files: Iterable<readonly [string, string | Uint8Array]>): void {
  for (const [path, content] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
}

function bundle(folder: string): Form {
  const { tree, remove } = copyTree(ROOT);
  try {
    write(folder, buildBundle(tree, VERSION, undefined));
  } finally {
    remove();
  }
  return [
    process.execPath,
    "run",
    "-A",
    "--no-config",
    "--no-lock",
    "--no-remote",
    "--no-npm",
    join(folder, "lib/waft.js"),
  ];
}

async function npmPackage(folder: string): Promise<Form> {
  const archives = await buildNpm(folder, { version: VERSION });
  write(folder, [["package.json", "{}"]]);
  const { status, stderr } = spawnSync("npm", ["install", "--no-audit", "--no-fund", ...archives], {
    cwd: folder,
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
  return [join(folder, "node_modules/.bin/waft")];
}

function single(folder: string): Form {
  const { tree, remove } = copyTree(ROOT);
  try {
    const [{ file }] = buildSingles({ tree, version: VERSION, out: folder, platforms: [platformName()] });
    return [file];
  } finally {
    remove();
  }
}

/** The answers of a form to all lines, in a folder with the files. */
function answers(form: Form, folder: string): { readonly status: number | null; readonly output: string }[] {
  const home = join(folder, "home"), work = join(folder, "work");
  mkdirSync(home, { recursive: true });
  write(work, Object.entries(FILES));
  const [program, ...first] = form;
  return LINES.map(([line]) => {
    const { status, stdout, stderr } = spawnSync(program, [...first, ...line.split(" ").filter(Boolean)], {
      cwd: work,
      encoding: "utf8",
      env: {
        PATH: process.env["PATH"],
        HOME: process.env["HOME"] ?? home,
        WAFT_HOME: join(home, "waft"),
        WAFT_REGISTRY: "http://127.0.0.1:1",
        WAFT_NO_REPORT: "1",
        NO_COLOR: "1",
      },
    });
    return { status, output: stdout + stderr };
  });
}

Deno.test({
  name: WHOLE
    ? "checkout, bundle, npm package and single executable answer alike"
    : "checkout, bundle, npm package and single executable answer alike (ignored: run `deno task test:installer`)",
  ignore: !WHOLE,
  fn: async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "waft-forms-"));
    const forms: Readonly<Record<string, (place: string) => Form | Promise<Form>>> = {
      checkout: () => [process.execPath, "run", "-A", join(ROOT, "cli.ts")],
      bundle,
      "npm package": npmPackage,
      "single executable": single,
    };
    try {
      for (const [name, make] of Object.entries(forms)) {
        await t.step(name, async () => {
          const place = join(folder, name.replaceAll(" ", "-"));
          mkdirSync(place);
          const given = answers(await make(place), join(place, "run"));
          LINES.forEach(([line, status, says], k) => {
            assert.equal(given[k].status, status, `waft ${line}: ${given[k].output}`);
            assert.match(given[k].output, says, `waft ${line}`);
          });
        });
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
