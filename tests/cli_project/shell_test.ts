/**
 * Completions and manual pages follow the command table; abbreviated command lines; errors in text modules show the
 * line.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { COMMANDS } from "../../project/commands/table.ts";
import { OUTPUT_SCHEMAS } from "../../project/output_schemas.ts";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { hostArguments } from "../support/host_arguments.ts";
import { type Run, waft } from "./waft.ts";

async function inFolder(
  work: (run: (...args: string[]) => Promise<Run>, home: string) => Promise<void>,
): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "waft-shell-"));
  try {
    await work((...args) => waft(args, home, home), home);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

const NAMES = COMMANDS.map(({ name }) => name);

/** The commands with an option `--json`, sub-commands as `plugin.list`. */
async function commandsWithJson(): Promise<string[]> {
  const found = new Set<string>();
  const visit = (commands: readonly Command[], path: readonly string[]): void => {
    for (const command of commands) {
      const words = [...path, command.name()];
      if (command.options.some(({ long }) => long === "--json")) found.add(words.join("."));
      visit(command.commands, words);
    }
  };
  for (const { load } of COMMANDS) {
    const program = new Command().enablePositionalOptions();
    (await load()).addCommand(program);
    visit(program.commands, []);
  }
  return [...found];
}

Deno.test("every command with --json has a schema", async () => {
  // `serve` writes a line for every event, not one document.
  const commands = (await commandsWithJson()).filter((command) => command !== "serve");
  assert.deepEqual(commands.sort(), Object.keys(OUTPUT_SCHEMAS).sort());
});

/** An environment whose PATH has the command `waft`, which completions ask for names. */
function withCommand(home: string): NodeJS.ProcessEnv {
  const words = [process.execPath, ...hostArguments(CLI)].map((word) => `'${word}'`).join(" ");
  mkdirSync(join(home, "bin"), { recursive: true });
  writeFileSync(join(home, "bin", "waft"), `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 });
  return { ...process.env, PATH: `${join(home, "bin")}:${process.env["PATH"]}` };
}

/** Bash's completions of these words. */
function completed(script: string, words: readonly string[], cwd: string): string[] {
  const list = words.map((word) => `'${word}'`).join(" ");
  const run = spawnSync("bash", [
    "-c",
    `. ${script}; COMP_WORDS=(waft ${list}); COMP_CWORD=${words.length}; _waft; printf '%s\n' "\${COMPREPLY[@]}"`,
  ], { cwd, encoding: "utf8", env: withCommand(cwd) });
  assert.equal(run.status, 0, run.stderr);
  return run.stdout.split("\n").filter((word) => word !== "");
}

Deno.test({
  name: "completion: bash completes commands, sub-commands, options and files",
  ignore: LACKS_POSIX_FILES, // it needs bash
}, () =>
  inFolder(async (run, home) => {
    const script = join(home, "waft.bash");
    writeFileSync(script, (await run("completion", "bash")).out);
    writeFileSync(join(home, "module.wasm"), "");
    const of = (...words: string[]): string[] => completed(script, words, home);
    const all = of("");
    for (const name of NAMES) assert.ok(all.includes(name), name);
    assert.deepEqual(of("vali"), ["validate"]);
    assert.deepEqual(of("plugin", "ya"), ["yank"]);
    assert.ok(of("plugin", "publish", "--").includes("--allow-dirty"));
    assert.ok(!of("plugin", "list", "--").includes("--allow-dirty"));
    assert.ok(of("run", "--").includes("--invoke"));
    assert.deepEqual(of("run", "mod"), ["module.wasm"]);
    // The value of an option is not a command.
    assert.ok(of("plugin", "list", "--project", "check", "--").includes("--json"));
  }));

/** A folder with files of several kinds. */
function writeKinds(home: string): void {
  writeFileSync(
    join(home, "lib.wat"),
    `(module (func (export "add") (param i32)) (func (export "a b")) (memory (export "m") 1))`,
  );
  writeFileSync(join(home, "lib.txt"), "");
  writeFileSync(join(home, "lib.wast"), "");
  mkdirSync(join(home, "library"));
}

Deno.test({
  name: "completion: bash completes the values of options, and files by kind",
  ignore: LACKS_POSIX_FILES, // it needs bash
}, () =>
  inFolder(async (run, home) => {
    const script = join(home, "waft.bash");
    writeFileSync(script, (await run("completion", "bash")).out);
    writeKinds(home);
    const of = (...words: string[]): string[] => completed(script, words, home).sort();
    assert.deepEqual(of("run", "--tier", ""), ["auto", "baseline", "optimizing"]);
    assert.deepEqual(of("run", "--tier", "=", "b"), ["baseline"]);
    assert.deepEqual(of("run", "--tier", "="), ["auto", "baseline", "optimizing"]);
    assert.ok(of("run", "--tier", "=", "auto", "--").includes("--invoke"));
    assert.deepEqual(of("validate", "--feature", "simd"), ["simd=off", "simd=on"]);
    assert.deepEqual(of("validate", "--feature", "simd", "=", "o"), ["off", "on"]);
    assert.deepEqual(of("init", "--kind", ""), ["application", "plugin"]);
    assert.deepEqual(of("run", "--fuel", ""), []);
    assert.deepEqual(of("run", "lib"), ["lib.wat", "library"]);
    assert.deepEqual(of("run", "lib.wat", "lib"), ["lib.txt", "lib.wast", "lib.wat", "library"]);
    assert.deepEqual(of("wast", "lib"), ["lib.wast", "library"]);
    assert.deepEqual(of("run", "--dir", "lib"), ["library"]);
    assert.deepEqual(of("run", "--invoke", ""), ["add"]);
    assert.deepEqual(of("run", "--invoke", "x"), []);
    assert.deepEqual(of("completion", "z"), ["zsh"]);
  }));

Deno.test("completion exports: the functions of the program that the words name, or of the only one here", () =>
  inFolder(async (run, home) => {
    const names = async (...words: string[]) => (await run("completion", "exports", "--", ...words)).out.trim();
    assert.equal(await names("run", "--invoke"), "");
    writeKinds(home);
    assert.equal(await names("run", "--invoke"), "add");
    writeFileSync(join(home, "app.wat"), GREETER);
    writeFileSync(join(home, "damaged.wasm"), "\0asm");
    assert.equal(await names("run", "--invoke"), "");
    assert.equal(await names("run", "--invoke", "", "lib.wat"), "add");
    assert.equal(await names("run", "--invoke", "", "app.wat"), "greet");
    assert.equal(await names("run", "--invoke", "", "damaged.wasm"), "");
    assert.equal((await run("completion", "bash", "more")).code, 2);
  }));

/** A component that exports a function. */
const GREETER = `(component
  (core module $m (func (export "f")))
  (core instance $i (instantiate $m))
  (func (export "greet") (canon lift (core func $i "f"))))`;

Deno.test({
  name: "completion: fish completes the values of options",
  ignore: spawnSync("fish", ["--version"]).error !== undefined,
}, () =>
  inFolder(async (run, home) => {
    const script = join(home, "waft.fish");
    writeFileSync(script, (await run("completion", "fish")).out);
    writeKinds(home);
    const of = (line: string): string[] => {
      const text = `source ${script}; complete -C '${line}'`;
      const env = { ...withCommand(home), XDG_CONFIG_HOME: home, XDG_DATA_HOME: home };
      const { stdout, stderr } = spawnSync("fish", ["-c", text], { cwd: home, encoding: "utf8", env });
      assert.equal(stderr, "");
      return stdout.trim().split("\n").map((row) => row.split("\t")[0]);
    };
    assert.deepEqual(of("waft run --tier "), ["auto", "baseline", "optimizing"]);
    assert.deepEqual(of("waft validate --feature simd").sort(), ["simd=off", "simd=on"]);
    assert.deepEqual(of("waft run --invoke "), ["add"]);
    assert.deepEqual(of("waft run --dir lib"), ["library/"]);
    assert.ok(of("waft run lib").includes("lib.wat"));
    assert.ok(of("waft r").includes("run"));
  }));

Deno.test("completion --install writes the script to the place of each shell", () =>
  inFolder(async (run, home) => {
    // The homes of the shells are chosen by variables, which `run` passes on.
    const env = { XDG_DATA_HOME: join(home, "data"), XDG_CONFIG_HOME: join(home, "config") };
    const places = [
      ["bash", "data/bash-completion/completions/waft"],
      ["zsh", "data/zsh/site-functions/_waft"],
      ["fish", "config/fish/completions/waft.fish"],
    ] as const;
    for (const [shell, place] of places) {
      const installed = await waft(["completion", shell, "--install"], home, home, env);
      assert.equal(installed.code, 0, installed.err);
      assert.ok(installed.err.includes(join(home, place)), installed.err);
      assert.equal(readFileSync(join(home, place), "utf8"), (await run("completion", shell)).out);
    }
    assert.equal((await run("completion", "powershell", "--install")).code, 2);
    // Without a word, the shell is that of the variable.
    const own = await waft(["completion", "--install"], home, home, { ...env, SHELL: "/usr/bin/fish" });
    assert.ok(own.code === 0 && own.err.includes(join(home, "config/fish/completions/waft.fish")), own.err);
    for (const [SHELL, error] of [["/bin/tcsh", /not "tcsh"/], ["", /missing required argument/]] as const) {
      const other = await waft(["completion", "--install"], home, home, { ...env, SHELL });
      assert.ok(other.code === 2 && error.test(other.err), other.err);
    }
    assert.equal((await run("completion")).code, 2);
  }));

Deno.test("completion: other shells accept their scripts, which name every command", () =>
  inFolder(async (run, home) => {
    for (const [shell, check] of [["zsh", ["-n"]], ["fish", ["--no-execute"]]] as const) {
      const { out, code } = await run("completion", shell);
      assert.equal(code, 0);
      for (const name of NAMES) assert.ok(out.includes(name), `${shell}: ${name}`);
      const file = join(home, `waft.${shell}`);
      writeFileSync(file, out);
      const checked = spawnSync(shell, [...check, file], { encoding: "utf8" });
      if (checked.error === undefined) assert.equal(checked.status, 0, `${shell}: ${checked.stderr}`);
    }
    const { out } = await run("completion", "powershell");
    for (const name of NAMES) assert.ok(out.includes(`@('${name}',`), name);
    assert.equal((await run("completion", "csh")).code, 2);
  }));

Deno.test("manual pages: one for each command, with all its options", () =>
  inFolder(async (run, home) => {
    assert.equal((await run("man", "--out", "pages")).code, 0);
    const pages = readdirSync(join(home, "pages")).sort();
    for (const name of NAMES) {
      assert.ok(pages.includes(`waft-${name}.1`), name);
      const text = readFileSync(join(home, "pages", `waft-${name}.1`), "utf8");
      assert.match(text, new RegExp(`^\\.TH "WAFT-${name.toUpperCase()}" "1"`));
      assert.match(text, /^\.SH OPTIONS$/m);
    }
    const plugin = readFileSync(join(home, "pages", "waft-plugin.1"), "utf8");
    assert.match(plugin, /^\.SH "PLUGIN YANK"$/m);
    assert.match(plugin, /\\-\\-allow\\-dirty/);
    assert.equal((await run("man", "run")).out, readFileSync(join(home, "pages", "waft-run.1"), "utf8"));
    assert.equal((await run("man", "nothing")).code, 2);
  }));

Deno.test("command lines: FILE runs it, -v, help of sub-commands", () =>
  inFolder(async (run, home) => {
    writeFileSync(join(home, "f.wat"), `(module (func (export "f") (param i32) (result i32) (local.get 0)))`);
    assert.equal((await run("f.wat", "12")).out, "12\n");
    assert.equal((await run("./f.wat", "13")).out, "13\n");
    assert.match((await run("g.wat")).err, /unknown command 'g\.wat'/);
    assert.equal((await run("-v")).out, (await run("--version")).out);
    assert.match((await run("help", "plugin", "list")).out, /^Usage: waft plugin list/);
    assert.match(
      (await run("run", "--feature", "smid=on", "f.wat", "1")).err,
      /unknown name "smid"; did you mean "simd"\?/,
    );
    assert.match((await run("run", "--opt", "inlin=on", "f.wat", "1")).err, /did you mean "inline"\?/);
    // A command's name wins over a file's.
    writeFileSync(join(home, "opts"), "");
    assert.match((await run("opts")).out, /inline/);
  }));

Deno.test("errors in text show the line and a caret; validate goes on after a failure", () =>
  inFolder(async (run, home) => {
    writeFileSync(join(home, "bad.wat"), '(module\n  (func (export "f") (result i32)\n\t(i32.ad (i32.const 1))))\n');
    writeFileSync(join(home, "good.wat"), "(module)");
    writeFileSync(join(home, "type.wat"), `(module (func (result i32) ${" ".repeat(200)}(i64.const 1)))`);
    const { code, err } = await run("validate", "bad.wat", "missing.wat", "good.wat", "type.wat");
    assert.equal(code, 1);
    assert.match(
      err,
      /^waft: bad\.wat:3:3: unknown operator i32\.ad\n {2}3 \| {3}\(i32\.ad|^waft: bad\.wat:3:3: .*\n {2}3 \| {2}\(i32\.ad/m,
    );
    assert.match(err, /^ {4}\| {3}\^$/m);
    assert.match(err, /^waft: missing\.wat: no such file or directory$/m);
    assert.match(err, /^waft: type\.wat:1:[0-9]+: type mismatch/m);
    for (const line of err.split("\n")) assert.ok(line.length < 140, line);
  }));

/** A guest that opens `/self.bin` for writing, replaces it by `/other`, removes and links it: the error numbers. */
const REWRITES = `(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_rename" (func $rename (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_unlink_file" (func $unlink (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_link" (func $link (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "self.bin") (data (i32.const 16) "other")
  (func (export "open") (result i32) (call $open (i32.const 3) (i32.const 1) (i32.const 0) (i32.const 8)
    (i32.const 0) (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 64)))
  (func (export "rename") (result i32)
    (call $rename (i32.const 3) (i32.const 16) (i32.const 5) (i32.const 3) (i32.const 0) (i32.const 8)))
  (func (export "unlink") (result i32) (call $unlink (i32.const 3) (i32.const 0) (i32.const 8)))
  (func (export "link") (result i32)
    (call $link (i32.const 3) (i32.const 1) (i32.const 0) (i32.const 8) (i32.const 3) (i32.const 16) (i32.const 5))))`;

Deno.test("compile: a guest cannot change the artifact that it runs from, whose next run executes machine code", () =>
  inFolder(async (run, folder) => {
    writeFileSync(join(folder, "rewrites.wat"), REWRITES);
    assert.equal((await run("compile", "rewrites.wat", "-o", "self.bin")).code, 0);
    const artifact = readFileSync(join(folder, "self.bin"));
    for (const change of ["open", "rename", "unlink", "link"]) {
      if (change === "rename") writeFileSync(join(folder, "other"), "machine code");
      const flags = ["--allow-precompiled", "--dir", ".::/", "--invoke", change];
      assert.deepEqual(await run("run", ...flags, "self.bin"), { code: 0, out: "63\n", err: "" }, change);
      rmSync(join(folder, "other"), { force: true });
    }
    assert.deepEqual(readFileSync(join(folder, "self.bin")), artifact);
  }));

Deno.test("compile: an artifact that runs only where it is allowed to; other machines", () =>
  inFolder(async (run, home) => {
    writeFileSync(join(home, "f.wat"), `(module (func (export "f") (result i32) (i32.const 41)))`);
    assert.equal((await run("compile", "f.wat", "-o", "f.bin")).code, 0);
    const refused = await run("run", "f.bin");
    assert.equal(refused.code, 2);
    assert.match(refused.err, /--allow-precompiled/);
    assert.equal((await run("run", "--allow-precompiled", "f.bin")).out, "41\n");
    assert.equal((await run("compile", "f.wat", "--target", "linux/arm64", "-o", "arm.bin")).code, 0);
    if (process.arch === "x64") {
      assert.match((await run("run", "--allow-precompiled", "arm.bin")).err, /artifact is for linux\/arm64/);
    }
    assert.equal((await run("compile", "f.wat", "--target", "plan9/arm64", "-o", "x.bin")).code, 2);
    writeFileSync(join(home, "bad.wat"), "(module (func (result i32)))");
    assert.equal((await run("compile", "bad.wat", "-o", "bad.bin")).code, 1);
    assert.ok(!existsSync(join(home, "bad.bin")));
    assert.deepEqual(readdirSync(home).filter((name) => name.endsWith(".tmp")), []);
  }));
