/** `waft run --argv0`, `--inherit-env`, `--watch`, and the options that grant drafts of WASI. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { removeFolder } from "../support/remove_folder.ts";
import { waft } from "./waft.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

/** Writes its name, or the number of its environment variables and the first of them. */
const INPUTS = `(module
  (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $env (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (memory (export "memory") 4)
  (func (export "name") (result i32) (drop (call $args (i32.const 8) (i32.const 64))) (i32.load8_u (i32.const 64)))
  (func (export "variables") (result i32) (drop (call $sizes (i32.const 0) (i32.const 4))) (i32.load (i32.const 0))))`;

async function inHome(action: (home: string) => Promise<void>): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "waft-inputs-"));
  try {
    await action(home);
  } finally {
    removeFolder(home);
  }
}

Deno.test("a guest gets the name of --argv0, and with --inherit-env the environment", async () => {
  await inHome(async (home) => {
    writeFileSync(join(home, "inputs.wat"), INPUTS);
    const run = async (...args: string[]) => {
      const { code, out, err } = await waft(["run", ...args, "inputs.wat"], home, home);
      assert.equal(code, 0, err);
      return Number(out);
    };
    assert.equal(await run("--argv0", "Zed", "--invoke", "name"), "Z".charCodeAt(0));
    assert.equal(await run("--invoke", "name"), "i".charCodeAt(0));
    assert.equal(await run("--invoke", "variables"), 0);
    const all = await run("--inherit-env", "--invoke", "variables");
    assert.ok(all >= 3, "at least PATH, HOME and WAFT_HOME");
    // A variable that replaces one, and one more.
    assert.equal(await run("--inherit-env", "--env", "PATH=x", "--env", "NEW=y", "--invoke", "variables"), all + 1);
  });
});

Deno.test({
  name: "waft run --watch runs a file again when it changes, and replaces a run that goes on",
  ignore: LACKS_POSIX_FILES,
}, async () => {
  await inHome(async (home) => {
    const file = join(home, "answer.wat");
    const answer = (body: string) => writeFileSync(file, `(module (func (export "f") (result i32) ${body}))`);
    answer("(i32.const 1)");
    const env = { ...process.env, WAFT_HOME: join(home, "waft"), NO_COLOR: "1" };
    const words = [...hostArguments(CLI), "run", "--watch", "--invoke", "f", "answer.wat"];
    const child = spawn(process.execPath, words, { cwd: home, env, stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    let err = "";
    child.stdout.on("data", (part) => out += String(part));
    child.stderr.on("data", (part) => err += String(part));
    const ended = new Promise<number | null>((resolve) => child.on("close", (code) => resolve(code)));
    const until = async (condition: () => boolean) => {
      while (!condition()) {
        assert.equal(child.exitCode, null, err);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    await until(() => err.includes("ended with status 0; waiting"));
    assert.equal(out, "1\n");
    answer("(loop $l (br $l)) (i32.const 0)");
    await until(() => err.includes("answer.wat has changed"));
    answer("(i32.const 3)");
    await until(() => out === "1\n3\n");
    if (child.pid !== undefined) process.kill(child.pid, "SIGTERM");
    assert.equal(await ended, 130);
  });
});

Deno.test("options grant a component drafts of WASI, and refuse modules", async () => {
  const drafts = fileURLToPath(new URL("../component/fixtures/drafts.wat", import.meta.url));
  await inHome(async (home) => {
    const grants = ["--config-var", "name=Ada", "--keyvalue", "--logging"];
    const run = await waft(["run", ...grants, "--invoke", "show()", drafts], home, home);
    assert.deepEqual(run, { code: 0, out: '"Ada"\n', err: "warn test: Ada\n" });
    writeFileSync(join(home, "inputs.wat"), INPUTS);
    const refused = await waft(["run", "--keyvalue", "--invoke", "name", "inputs.wat"], home, home);
    assert.equal(refused.code, 2);
    assert.match(refused.err, /are for components/);
    const wrong = await waft(["run", "--config-var", "name", drafts], home, home);
    assert.deepEqual([wrong.code, /--config-var takes NAME=VALUE/.test(wrong.err)], [2, true]);
  });
});

Deno.test("mistakes of --watch are one line", async () => {
  await inHome(async (home) => {
    const missing = await waft(["run", "--watch", "missing.wat"], home, home);
    assert.equal(missing.code, 1);
    assert.match(missing.err, /^waft: missing\.wat: [^\n]+\n$/);
    const input = await waft(["run", "--watch", "-"], home, home);
    assert.equal(input.code, 2);
    assert.match(input.err, /--watch needs a file/);
  });
});
