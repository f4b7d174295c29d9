/**
 * `waft build`: the executable contains the compiled program, and wrong command lines are refused. In: a file with the
 * head of an executable in place of a runtime. tests/installer/single_test.ts runs real ones.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { NewEngine } from "@waft/engine";
import { readApplication } from "../../project/ops/build/application.ts";
import { runBuiltComponent } from "../../project/ops/build/built_component.ts";
import { waft } from "./waft.ts";

const GREET = fileURLToPath(new URL("../component/fixtures/greet.wat", import.meta.url));

/** The head of an executable for Linux on this processor, and the text by which runtimes are recognized. */
function runtime(): Uint8Array {
  const bytes = new Uint8Array(2048);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1], 0);
  bytes[18] = process.arch === "x64" ? 62 : 183;
  bytes.set(new TextEncoder().encode("waft-application"), 1500);
  return bytes;
}

/** The same for Windows on x64. */
function windowsRuntime(): Uint8Array {
  const bytes = new Uint8Array(2048);
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode("MZ"), 0);
  view.setUint32(60, 128, true);
  bytes.set(new TextEncoder().encode("PE"), 128);
  view.setUint16(132, 0x8664, true);
  bytes.set(new TextEncoder().encode("waft-application"), 1500);
  return bytes;
}

async function inFolder(work: (folder: string, run: (...args: string[]) => ReturnType<typeof waft>) => Promise<void>) {
  const folder = mkdtempSync(join(tmpdir(), "waft-build-"));
  try {
    writeFileSync(join(folder, "runtime"), runtime());
    writeFileSync(join(folder, "f.wat"), `(module (func (export "f") (result i32) (i32.const 41)))`);
    await work(folder, (...args) => waft(["build", ...args], folder, folder));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

Deno.test("build: the program and its inputs are in the executable", () =>
  inFolder(async (folder, run) => {
    const grants = ["--dir", "data::/data", "--env", "A=1", "--invoke", "f"];
    const { code, out, err } = await run("f.wat", "-o", "app", "--runtime", "runtime", ...grants);
    assert.deepEqual([code, out, err], [0, "", ""]);
    const application = readApplication(join(folder, "app"));
    assert.deepEqual(application?.inputs, { form: "module", invoke: "f", dir: ["data::/data"], env: ["A=1"] });
    if (process.platform !== "linux") return;
    const instance = NewEngine().load(application?.program ?? new Uint8Array()).instantiate({});
    assert.equal(instance.call({}, "f"), 41);
  }));

Deno.test("build: the groups of WASI that the project allows are in the executable", () =>
  inFolder(async (folder, run) => {
    writeFileSync(join(folder, "waft.json"), "{}");
    assert.equal((await waft(["add", "--wasi", "stdio,env"], folder, folder)).code, 0);
    const build = ["f.wat", "-o", "app", "--runtime", "runtime"];
    assert.equal((await run(...build, "--env", "A=1")).code, 0);
    assert.deepEqual(readApplication(join(folder, "app"))?.inputs.wasi, ["env", "stdio"]);
    const { code, err } = await run(...build, "--dir", ".");
    assert.equal(code, 4);
    assert.match(err, /the project does not allow its guests --dir \(fs\)/);
    assert.equal((await run(...build, "--dir", ".", "--bare")).code, 0);
    assert.equal(readApplication(join(folder, "app"))?.inputs.wasi, undefined);
  }));

Deno.test("build: a component runs from the executable", () =>
  inFolder(async (folder, run) => {
    const { code, err } = await run(GREET, "-o", "app", "--runtime", "runtime", "--invoke", "greet");
    assert.deepEqual([code, err], [0, ""]);
    const application = readApplication(join(folder, "app"));
    assert.equal(application?.inputs.form, "component");
    if (process.platform !== "linux") return;
    const inputs = { context: {}, env: [], preopens: [], wasiGroups: undefined, invoke: 'greet("you")' };
    const lines = await runBuiltComponent("app", application?.program ?? new Uint8Array(), [], inputs);
    assert.match(lines.join("\n"), /you/);
    const program = application?.program ?? new Uint8Array();
    const cut = [0, 7, 8, 15, 100].map((bytes) => program.subarray(0, bytes));
    const counted = [0x7fffffff, 0xffffffff].map((count) => {
      const copy = program.slice();
      new DataView(copy.buffer).setUint32(12, count, true);
      return copy;
    });
    for (const damaged of [...cut, ...counted]) {
      await assert.rejects(runBuiltComponent("app", damaged, [], inputs), /the application is damaged: /);
    }
  }));

Deno.test("build --oci: the image has the executable alone, with its program", () =>
  inFolder(async (folder, run) => {
    const image = ["f.wat", "-o", "image.tar", "--runtime", "runtime", "--oci", "team/app:1.0", "--sysroot", folder];
    const { code, out, err } = await run(...image);
    assert.deepEqual([code, out, err], [0, "", ""]);
    assert.deepEqual(readdirSync(folder).filter((name) => /app|tmp|image/.test(name)), ["image.tar"]);
    const tar = new TextDecoder("latin1").decode(readFileSync(join(folder, "image.tar")));
    assert.match(tar, /"org\.opencontainers\.image\.ref\.name":"1\.0"/);
    assert.match(tar, /"Entrypoint":\["\/app"\]/);
  }));

Deno.test("build: wrong command lines and files are refused, and nothing is written", () =>
  inFolder(async (folder, run) => {
    writeFileSync(join(folder, "bad.wat"), `(module (func (export "f") (result i32)))`);
    writeFileSync(join(folder, "windows"), windowsRuntime());
    const rows: readonly (readonly [code: number, message: RegExp, ...args: string[]])[] = [
      [2, /this waft is not one: name one with --runtime FILE\. Releases contain them/, "f.wat"],
      [2, /--runtime: f\.wat is not a single executable of waft/, "f.wat", "--runtime", "f.wat"],
      [2, /--runtime: cannot read none/, "f.wat", "--runtime", "none"],
      [2, /exports no function "g"/, "f.wat", "--runtime", "runtime", "--invoke", "g"],
      [2, /--dir takes HOST::GUEST/, "f.wat", "--runtime", "runtime", "--dir", "::"],
      [1, /Unknown instruction set "lead"/, "f.wat", "--runtime", "runtime", "--cpu", "lead"],
      [1, /bad\.wat:1/, "bad.wat", "--runtime", "runtime"],
      [
        2,
        /not a command.* does not export wasi:cli\/run; call one of its functions with --invoke/,
        GREET,
        "--runtime",
        "runtime",
      ],
      [1, /none\.wat/, "none.wat", "--runtime", "runtime"],
      [2, /--sysroot needs --oci/, "f.wat", "--runtime", "runtime", "--sysroot", "/"],
      [2, /--oci takes NAME:TAG/, "f.wat", "--runtime", "runtime", "--oci", "team/app"],
      [2, /--oci takes NAME:TAG/, "f.wat", "--runtime", "runtime", "--oci", "Team/App:1"],
      [2, /containers run Linux; the runtime is for windows\/amd64/, "f.wat", "--runtime", "windows", "--oci", "a:1"],
    ];
    for (const [code, message, ...args] of rows) {
      const result = await run(...args, "-o", "app");
      assert.match(result.err, message);
      assert.equal(result.code, code, result.err);
    }
    assert.deepEqual(readdirSync(folder).filter((name) => /app|tmp/.test(name)), []);
  }));
