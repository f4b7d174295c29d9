/**
 * WASI directories and variables from the machine's `config.json`: a project gets its own entry and nothing else; no
 * content of a project widens it. The guest exits with ten times its directories plus its variables.
 */
import assert from "node:assert/strict";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Descriptor } from "../../component/wasi/filesystem.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";
import { machinePaths } from "../../project/base/paths.ts";
import { machineWasi } from "../../project/machine_wasi.ts";
import { LACKS_LINKS, LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { waft } from "./waft.ts";

const COUNTS = `(module
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $fd i32)
    (local.set $fd (i32.const 3))
    (loop $more
      (if (i32.eqz (call $prestat (local.get $fd) (i32.const 0)))
        (then (local.set $fd (i32.add (local.get $fd) (i32.const 1))) (br $more))))
    (drop (call $sizes (i32.const 16) (i32.const 20)))
    (call $exit (i32.add (i32.mul (i32.sub (local.get $fd) (i32.const 3)) (i32.const 10)) (i32.load (i32.const 16))))))`;

interface Machine {
  readonly home: string;
  readonly project: string;
  /** Writes the configuration. */
  readonly configure: (projects: unknown) => void;
  /** Runs the guest in a directory: status and errors. */
  readonly run: (cwd: string, ...flags: string[]) => Promise<[code: number, err: string]>;
}

async function onMachine(work: (machine: Machine) => Promise<void>): Promise<void> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "waft-machine-")));
  try {
    const project = join(home, "project");
    mkdirSync(join(project, "data"), { recursive: true });
    mkdirSync(join(home, "outside"));
    mkdirSync(join(home, "waft"), { recursive: true });
    writeFileSync(join(project, "waft.json"), "{}");
    writeFileSync(join(project, "counts.wat"), COUNTS);
    await work({
      home,
      project,
      configure: (projects) => writeFileSync(join(home, "waft/config/config.json"), JSON.stringify({ projects })),
      run: async (cwd, ...flags) => {
        const { code, err } = await waft(["run", ...flags, join(project, "counts.wat")], cwd, home);
        return [code, err];
      },
    });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

Deno.test("the entry of a project is like --dir and --env; flags come first, --bare ignores it", () =>
  onMachine(async ({ home, project, configure, run }) => {
    mkdirSync(join(home, "waft/config"), { recursive: true });
    assert.deepEqual(await run(project), [0, ""]);
    configure({ [project]: { dirs: { "/data": "data", "/out": join(home, "outside") }, env: { A: "1", B: "2" } } });
    assert.deepEqual(await run(project), [22, ""]);
    assert.deepEqual(await run(join(project, "data")), [22, ""], "below the project");
    assert.deepEqual(await run(project, "--dir", `${home}/outside::/data`, "--env", "A=3"), [22, ""], "replaced");
    assert.deepEqual(await run(project, "--dir", `${home}/outside::/more`, "--env", "C=3"), [33, ""], "added");
    assert.deepEqual(await run(project, "--bare"), [0, ""]);
    const status = await waft(["status", "--json"], project, home);
    assert.deepEqual(JSON.parse(status.out).data.wasi, {
      dirs: ["data::/data", `${join(home, "outside")}::/out`],
      env: ["A", "B"],
    });
    assert.doesNotMatch(status.out, /"A": *"1"/);
  }));

Deno.test("a copy, a moved project and a project below another get nothing of its entry", () =>
  onMachine(async ({ home, project, configure, run }) => {
    mkdirSync(join(home, "waft/config"), { recursive: true });
    configure({ [project]: { dirs: { "/data": "data" } } });
    const copy = join(home, "copy");
    cpSync(project, copy, { recursive: true });
    assert.deepEqual(await run(copy), [0, ""]);
    const inner = join(project, "inner");
    mkdirSync(inner);
    writeFileSync(join(inner, "waft.json"), "{}");
    assert.deepEqual(await run(inner), [0, ""]);
    // Through a symbolic link it is the same project.
    if (!LACKS_LINKS) {
      symlinkSync(project, join(home, "alias"));
      assert.deepEqual(await run(join(home, "alias")), [10, ""]);
    }
    renameSync(project, join(home, "moved"));
    writeFileSync(join(home, "moved/counts.wat"), COUNTS);
    const moved = await waft(["run", "counts.wat"], join(home, "moved"), home);
    assert.deepEqual([moved.code, moved.err], [0, ""]);
  }));

Deno.test({
  name: "guests get the directory that was checked, whatever its path leads to later",
  ignore: LACKS_LINKS,
  fn: () =>
    onMachine(async ({ home, project }) => {
      const config = join(home, "config");
      mkdirSync(config, { mode: 0o755 });
      writeFileSync(
        join(config, "config.json"),
        JSON.stringify({ projects: { [project]: { dirs: { "/d": "data" } } } }),
      );
      const { preopens } = (await machineWasi(project, { ...machinePaths(), config }))!;
      renameSync(join(project, "data"), join(project, "checked"));
      symlinkSync("../outside", join(project, "data"));
      for (const name of ["first", "second"]) {
        const wasi = new ComponentWasi({ preopens });
        const found = wasi.imports["wasi:filesystem/preopens"] as { getDirectories(): [Descriptor, string][] };
        found.getDirectories()[0][0].createDirectoryAt(name);
        wasi.close();
      }
      assert.deepEqual(readdirSync(join(project, "checked")).sort(), ["first", "second"]);
      assert.deepEqual(readdirSync(join(home, "outside")), []);
    }),
});

Deno.test("neither a project nor another user can widen an entry", () =>
  onMachine(async ({ home, project, configure, run }) => {
    mkdirSync(join(home, "waft/config"), { recursive: true });
    const rows: [host: string, link: string, target: string][] = [
      ["data", "project/data", join(home, "outside")],
      [join(project, "data"), "project/data", "../outside"],
      ["data", "project/data", "inner"],
      ["data/inner", "project/data", "."],
      ["../common/data", "common", "outside"],
    ];
    for (const [host, link, target] of LACKS_LINKS ? [] : rows) {
      configure({ [project]: { dirs: { "/data": host } } });
      rmSync(join(home, link), { recursive: true, force: true });
      symlinkSync(target, join(home, link));
      const [code, err] = await run(project);
      assert.equal(code, 1);
      assert.ok(err.includes(`${link} is a symbolic link to ${target}`), err);
      rmSync(join(home, link));
      mkdirSync(join(project, "data/inner"), { recursive: true });
      mkdirSync(join(home, "common/data"), { recursive: true });
      assert.deepEqual(await run(project), [10, ""]);
    }
    const config = join(home, "waft/config/config.json");
    // Permissions of Windows are not judged.
    if (!LACKS_POSIX_FILES) {
      chmodSync(config, 0o666);
      assert.match((await run(project))[1], /config\.json can be written by every user/);
      chmodSync(config, 0o644);
    }
    configure({ [project]: { dirs: { "/data": "gone" } } });
    assert.match((await run(project))[1], /directory .*gone does not exist/);
    for (const wrong of [{ relative: {} }, { [project]: { dir: {} } }, { [project]: { env: { "A=B": "" } } }]) {
      configure(wrong);
      assert.match((await run(project))[1], /config\.json/);
    }
  }));
