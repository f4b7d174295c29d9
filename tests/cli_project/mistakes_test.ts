/**
 * Mistakes on the command line: the message names the error, its place and the alternatives. Modules from pipes.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";
import { MAPPED_FRAMES, mappedModule, sourceMap } from "../support/mapped_module.ts";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { waft } from "./waft.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));
const ADD = `(module (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))`;

/** A module whose text is far longer than a pipe's buffer. */
function manyFunctions(): string {
  return Array.from({ length: 20_000 }, (_, i) => `(func (export "f${i}"))`).join("\n");
}

async function inFolder(work: (home: string) => Promise<void> | void): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "waft-mistakes-"));
  try {
    writeFileSync(join(home, "add.wat"), ADD);
    await work(home);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

Deno.test("mistakes: one line with the fault and its place, and the status for it", () =>
  inFolder(async (home) => {
    mkdirSync(join(home, "empty"));
    writeFileSync(join(home, "damaged.wasm"), Uint8Array.of(0x58, 0x61, 0x73, 0x6d, 1, 0, 0, 0));
    const many = Array.from({ length: 100 }, (_, i) => `(func (export "f${i}"))`);
    writeFileSync(join(home, "many.wat"), many.join("\n"));
    writeFileSync(join(home, "README.md"), "# waft\n");
    writeFileSync(join(home, "c.wat"), "(component)");
    const rows: [string[], number, RegExp][] = [
      [
        ["run", "README.md"],
        1,
        /^waft: README\.md:1:1: this is text, but not that of a module.*: it begins with "# waft"\n/,
      ],
      [["compile", "c.wat", "-o", "c"], 1, /^waft: c\.wat: this is a component, and artifacts are of modules/],
      [["run", "add.wat", "1", "x"], 2, /^waft: add\.wat: argument 2 of "add": "x" is not an i32\n$/],
      [["run", "add.wat", "1"], 2, /^waft: add\.wat: "add" takes 2 arguments, not 1\n$/],
      [["run", "many.wat"], 2, /choose one with --invoke NAME before the file:\n {4}f0 .*\n {4}and 60 more\n$/s],
      [["run", "damaged.wasm"], 1, /^waft: damaged\.wasm: neither a module's binary form, .* nor its text: .*\n$/],
      [["validate", "damaged.wasm"], 1, /^waft: damaged\.wasm: neither a module's binary form/],
      [["wast", "damaged.wasm"], 1, /^waft: damaged\.wasm: neither a module's binary form/],
      [["wast", "empty"], 1, /^waft: empty: no test scripts \(\.wast\) are below this directory\n$/],
      [["print", "add.wat", "-o", "empty"], 1, /^waft: empty: is a directory\n$/],
      [["help", "rnu"], 2, /^waft: unknown command 'rnu'\n\(Did you mean run\?\)\n$/],
      [["rnu"], 2, /^waft: unknown command 'rnu'\n\(Did you mean run\?\)\n$/],
    ];
    for (const [words, status, message] of rows) {
      const { code, out, err } = await waft(words, home, home);
      assert.match(err, message, `${words.join(" ")}: ${err}`);
      assert.deepEqual([code, out], [status, ""], words.join(" "));
    }
  }));

Deno.test("traps: what was exceeded, and a recursion once", () =>
  inFolder(async (home) => {
    const text = `(module (memory 1)
      (func (export "load") (result i32) (i32.load (i32.const 70000)))
      (func (export "spin") (loop $l (br $l)))
      (func $sink (export "sink") (call $sink) (nop)))`;
    writeFileSync(join(home, "traps.wat"), text);
    const rows: [string[], RegExp][] = [
      [["load"], /trap: out of bounds memory access \([^)]*70000[^)]*65536[^)]*\)\n {4}at load /],
      [["spin", "--timeout", "30"], /trap: interrupted \(--timeout 30 ms\)\n {4}at spin /],
      [["spin", "--timeout", "0.03s"], /trap: interrupted \(--timeout 0\.03s\)\n {4}at spin /],
      [
        ["spin", "--timeout", "1h", "--processor-time", "30"],
        /trap: interrupted \(--processor-time 30 ms\)\n {4}at spin /,
      ],
      [["spin", "--fuel", "100"], /trap: out of fuel \(--fuel 100\)\n {4}at spin /],
      [["spin", "--tier", "optimizing", "--fuel", "100"], /trap: out of fuel \(--fuel 100\)\n {4}at spin /],
      [
        ["sink"],
        /trap: call stack exhausted\n(?: {4}at sink .*\n){1,2} {4}\.\.\. \d+ more frames of this recursion\n?$/,
      ],
    ];
    for (const [[name, ...flags], message] of rows) {
      const { code, err } = await waft(["run", ...flags, "--invoke", name, "traps.wat"], home, home);
      assert.match(err, message);
      assert.equal(code, 134, name);
    }
  }));

Deno.test("a memory above its limit: the option that limits it", () =>
  inFolder(async (home) => {
    writeFileSync(join(home, "large.wat"), `(module (memory 20000) (func (export "f")))`);
    const rows: [string[], string][] = [
      [[], "the limit of 16384 (the default of --max-memory)"],
      [["--max-memory", "1MiB"], "the limit of 16 (--max-memory 1MiB)"],
    ];
    for (const [flags, end] of rows) {
      const { code, err } = await waft(["run", ...flags, "large.wat"], home, home);
      assert.deepEqual([code, err], [1, `waft: large.wat: Out of memory: 20000 pages exceed ${end}\n`]);
    }
  }));

Deno.test("a program that fills the heap: the option that limits it", () =>
  inFolder(async (home) => {
    writeFileSync(
      join(home, "list.wat"),
      `(module (type $list (struct (field (ref null $list)))) (global $list (mut (ref null $list)) (ref.null $list))
        (func (export "f") (loop $next (global.set $list (struct.new $list (global.get $list))) (br $next))))`,
    );
    const { code, err } = await waft(["run", "--max-heap", "1MiB", "--invoke", "f", "list.wat"], home, home);
    assert.equal(code, 134);
    assert.match(err, /out of memory: objects need more than the limit of 1048576 bytes \(--max-heap 1MiB\)/);
  }));

Deno.test("a trap has the places of the source map beside the program", () =>
  inFolder(async (home) => {
    writeFileSync(join(home, "a.wasm"), mappedModule("./a.wasm.map"));
    writeFileSync(join(home, "a.wasm.map"), sourceMap());
    const expected = `waft: a.wasm: trap: unreachable\n${MAPPED_FRAMES.map((line) => `    ${line}\n`).join("")}`;
    for (const words of [["a.wasm"], ["a.wasm"], ["--no-cache", "a.wasm"], ["--unknown-imports", "trap", "a.wasm"]]) {
      const { code, err } = await waft(["run", "--invoke", "f", ...words], home, home);
      assert.deepEqual([code, err], [134, expected], words.join(" "));
    }
  }));

Deno.test("a program that fails after it has looked for files gets a hint if it has no directory", () =>
  inFolder(async (home) => {
    const program = (call: string, end: string) =>
      `(module
      (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "path_open"
        (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
      (memory (export "memory") 1)
      (func (export "_start") ${call} ${end}))`;
    const prestat = "(drop (call $prestat (i32.const 3) (i32.const 0)))";
    const open = "(drop (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0) " +
      "(i64.const 0) (i64.const 0) (i32.const 0) (i32.const 8)))";
    const failing = "(call $exit (i32.const 3))";
    const hint = /waft: hint: the program has looked for files, but it has no directory: --dir \. gives it .*\n$/;
    const rows: [string, string, string[], boolean, number][] = [
      [prestat, failing, [], true, 3],
      [open, failing, [], true, 3],
      [open, "unreachable", [], true, 134],
      [open, "(call $exit (i32.const 0))", [], false, 0],
      [prestat, failing, ["--dir", "."], false, 3],
      ["", failing, [], false, 3],
    ];
    for (const [call, end, flags, isHinted, status] of rows) {
      writeFileSync(join(home, "files.wat"), program(call, end));
      const { code, err } = await waft(["run", ...flags, "files.wat"], home, home);
      assert.deepEqual([code, hint.test(err)], [status, isHinted], `${call} ${end}: ${err}`);
    }
  }));

/** A name that forges a line of output, and characters that hide or reorder the text around them. */
const FORGED = "x\nwaft: everything is fine\u200b\u200e\u200f\u061c\u202e\u2066\u001b[2K\ufeff\u00ad";

Deno.test("mistakes: names in modules and files forge no line and hide nothing", () =>
  inFolder(async (home) => {
    const text = [...new TextEncoder().encode(FORGED)].map((b) => `\\${b.toString(16).padStart(2, "0")}`).join("");
    const one = `(module (func (export "${text}") (param i32)))`;
    const modules: { readonly [name: string]: string } = {
      "one.wat": one,
      "two.wat": `(module (func (export "${text}")) (func (export "b")))`,
      "missing.wat": `(module (import "${text}" "${text}" (func)) (func (export "f")))`,
      "invalid.wat": `(module (func (export "${text}")) (func (export "${text}")))`,
      "trap.wat": `(module (func (export "${text}") unreachable))`,
      // No name of Windows contains control characters.
      ...(LACKS_POSIX_FILES ? {} : { [`${FORGED}.wat`]: one }),
    };
    let failures = 0;
    for (const [file, wat] of Object.entries(modules)) {
      writeFileSync(join(home, file), wat);
      for (
        const words of [["run", file], ["run", "--invoke", FORGED, file], ["run", "--invoke", "none", file], [
          "validate",
          file,
        ]]
      ) {
        const { code, err } = await waft(words, home, home);
        const what = `${words.slice(0, -1).join(" ")} of ${JSON.stringify(file)}: ${err}`;
        if (code !== 0) failures++;
        assert.doesNotMatch(err, /^waft: everything is fine/m, what);
        assert.doesNotMatch(err, /\p{Cf}/u, what);
        assert.ok(!err.includes("\u001b"), what);
      }
    }
    assert.ok(failures >= (LACKS_POSIX_FILES ? 12 : 15), String(failures));
  }));

Deno.test("mistakes: self uninstall where the installer did not put waft removes nothing", () =>
  inFolder(async (home) => {
    mkdirSync(join(home, "waft", "cache"), { recursive: true });
    writeFileSync(join(home, "waft", "cache", "mine"), "mine");
    const { code, err } = await waft(["self", "uninstall", "--yes"], home, home);
    const [refusal, status] = LACKS_POSIX_FILES
      ? [/usage\.windows: a running program cannot remove its own files/, 2] as const
      : [/install\.missing: waft was not installed here/, 1] as const;
    assert.match(err, refusal);
    assert.equal(code, status);
    assert.deepEqual(readdirSync(join(home, "waft")), ["cache"]);
    assert.deepEqual(readdirSync(join(home, "waft", "cache")), ["mine"]);
  }));

Deno.test("modules come from standard input and go to standard output", () =>
  inFolder((home) => {
    const env = { ...process.env, WAFT_HOME: join(home, "waft") };
    const waft = (input: string | Uint8Array, ...args: string[]): Buffer => {
      const { status, stdout, stderr } = spawnSync(process.execPath, [...hostArguments(CLI), ...args], {
        cwd: home,
        env,
        input,
      });
      assert.equal(status, 0, String(stderr));
      return stdout;
    };
    const text = readFileSync(join(home, "add.wat"));
    assert.equal(String(waft(text, "run", "-", "4", "6")), "10\n");
    const module = waft(text, "parse", "-", "-o", "-");
    assert.match(String(waft(module, "print", "-")), /^\(module\n/);
  }));

Deno.test({
  name: "modules come from pipes and devices that a shell opens",
  ignore: LACKS_POSIX_FILES, // it needs a shell
  fn: () =>
    inFolder((home) => {
      const shell = (script: string): string => {
        const env = { ...process.env, WAFT_HOME: `${home}/waft` };
        const words = [process.execPath, ...hostArguments(CLI)].map((word) => `'${word}'`).join(" ");
        const { status, stdout, stderr } = spawnSync("bash", ["-c", `waft() { ${words} "$@"; }; ${script}`], {
          cwd: home,
          env,
          encoding: "utf8",
        });
        assert.equal(status, 0, stderr);
        return stdout;
      };
      assert.equal(shell("waft run - 4 6 < add.wat"), "10\n");
      assert.equal(shell("cat add.wat | waft run /dev/stdin 4 6"), "10\n");
      assert.equal(shell("cat add.wat | waft parse - -o - | waft print - | head -1"), "(module\n");
      shell("waft parse add.wat -o add.wasm && waft run add.wasm 1 2");
      assert.equal(shell("waft run <(cat add.wasm) 4 7"), "11\n", "also where the cache has it");
    }),
});

Deno.test({
  name: "modules come from files and pipes that the shell of Windows opens",
  ignore: !LACKS_POSIX_FILES, // it needs cmd
  fn: () =>
    inFolder((home) => {
      writeFileSync(join(home, "many.wat"), manyFunctions());
      const waft = [process.execPath, ...hostArguments(CLI)].map((word) => `"${word}"`).join(" ");
      const script = [
        "@echo off",
        `${waft} run - 4 6 < add.wat > sum`,
        `type many.wat | ${waft} print - > typed`,
        `${waft} print many.wat > whole`,
        `${waft} print many.wat | ${waft} print - > twice`, // the second reads late: the pipe is full
        `${waft} run - < nul 2> nothing`,
      ];
      writeFileSync(join(home, "steps.cmd"), script.join("\r\n"));
      const env = { ...process.env, WAFT_HOME: join(home, "waft") };
      const { error } = spawnSync("cmd", ["/d", "/c", "steps.cmd"], { cwd: home, env, stdio: "ignore" });
      assert.equal(error, undefined);
      const [sum, typed, whole, twice, nothing] = ["sum", "typed", "whole", "twice", "nothing"].map((name) =>
        readFileSync(join(home, name), "utf8")
      );
      assert.equal(sum, "10\n");
      assert.ok(whole.length > 500_000);
      assert.ok(typed === whole && twice === whole, `${typed.length}, ${twice.length} of ${whole.length}`);
      assert.match(nothing, /waft: -: unexpected end/);
    }),
});

Deno.test({
  name: "output to a slow pipe arrives completely",
  // It needs a shell. Bun makes inherited pipes non-blocking, also for the shell and cat, which then lose output.
  ignore: LACKS_POSIX_FILES || "Bun" in globalThis,
  fn: () =>
    inFolder((home) => {
      writeFileSync(join(home, "many.wat"), manyFunctions());
      const waft = [process.execPath, ...hostArguments(CLI), "print", "many.wat"];
      const printed = (command: string) =>
        spawnSync("bash", ["-c", command, "bash", ...waft], { cwd: home, encoding: "utf8", maxBuffer: 1 << 26 }).stdout;
      const whole = printed('"$@" -o printed.wat && cat printed.wat');
      assert.ok(whole.length > 500_000);
      assert.equal(printed('"$@" | (sleep 1; cat)'), whole);
      assert.equal(printed('"$@" | head -1'), whole.slice(0, whole.indexOf("\n") + 1), "no reader for the rest");
    }),
});

Deno.test("help: an empty list is not shown as a default", () =>
  inFolder(async (home) => {
    const { out } = await waft(["help", "run"], home, home);
    assert.match(out, / {2}--dir <host::guest> +Give the guest a directory \(repeatable\)\n/);
  }));
