/**
 * Permissions of the files that the command writes: those that the umask leaves, or fewer, for every command that
 * writes any. An artifact, an executable or a start-up file that others can write runs their code.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import process from "node:process";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { waftProgram } from "./waft.ts";

const MODULE = `(module (memory (export "memory") 1)
  (func (export "run") (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
  (func (export "trap") unreachable))`;
const COMPONENT = `(component
  (core module $m (func (export "id") (param i32) (result i32) (local.get 0)))
  (core instance $i (instantiate $m))
  (func (export "id") (param "x" u32) (result u32) (canon lift (core func $i "id"))))`;
const USER = `(component (import "id" (func (param "x" u32) (result u32))))`;
const WIT = "package t:p; world w { export run: func(x: s32) -> s32; }";

/** Command lines and the files that they write; traps are expected to fail. */
const COMMANDS: readonly (readonly [args: string, file: string])[] = [
  ["compile m.wat -o m.wart", "m.wart"],
  ["parse m.wat -o m.wasm", "m.wasm"],
  ["parse m.wat -o dangling", "named"],
  ["print m.wasm -o printed.wat", "printed.wat"],
  ["explore m.wat -o m.html", "m.html"],
  ["profile --counts -o counts.html --invoke run m.wat 1", "counts.html"],
  ["run --record m.rec --invoke run m.wat 1", "m.rec"],
  ["run --coredump core --invoke trap m.wat", "core"],
  ["component new m.wasm --wit m.wit -o c.wasm", "c.wasm"],
  ["compose u.wat --plug c.wat -o composed.wasm", "composed.wasm"],
  ["types c.wat -o types", "types"],
  ["man --out man", "man"],
  ["init --full --yes --kind application --name app", "waft.json"],
];

/** Every path below `folder`. */
function* below(folder: string): Generator<string> {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    yield path;
    if (lstatSync(path).isDirectory()) yield* below(path);
  }
}

for (const umask of ["022", "077"]) {
  Deno.test({
    name: `files that commands write have at most the permissions that the umask ${umask} leaves`,
    ignore: LACKS_POSIX_FILES,
    fn() {
      const folder = mkdtempSync(join(tmpdir(), "waft-modes-"));
      try {
        const [home, work] = [join(folder, "home"), join(folder, "work")];
        for (const made of [home, work]) mkdirSync(made, { mode: 0o755 });
        for (const [name, text] of [["m.wat", MODULE], ["c.wat", COMPONENT], ["u.wat", USER], ["m.wit", WIT]]) {
          writeFileSync(join(work, name), text);
        }
        symlinkSync("named", join(work, "dangling"));
        writeFileSync(join(folder, "waft"), waftProgram(), { mode: 0o755 });
        const given = new Set(below(folder));
        for (const [args, file] of COMMANDS) {
          const script = `umask ${umask}; cd "$1" && exec ../waft ${args}`;
          const { stderr } = spawnSync("sh", ["-c", script, "sh", work], {
            encoding: "utf8",
            env: { PATH: process.env.PATH, HOME: process.env.HOME, WAFT_HOME: join(home, "waft"), NO_COLOR: "1" },
          });
          assert.ok(lstatSync(join(work, file), { throwIfNoEntry: false }) !== undefined, `${args}: ${stderr}`);
        }
        const forbidden = Number.parseInt(umask, 8);
        const found = [...below(folder)].filter((path) => !given.has(path));
        const open = found.filter((path) => (lstatSync(path).mode & forbidden) !== 0);
        assert.deepEqual(open.map((path) => relative(folder, path)), []);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  });
}
