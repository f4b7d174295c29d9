/**
 * Storms of WASI calls: random opening, closing and renumbering of descriptors against a model, exhaustion of
 * descriptors, loops of calls that only a limit ends, and paths that change between check and use. `WAFT_STORM` is the
 * number of rounds.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { NewEngine } from "../../engine/api/engine.ts";
import { ERRNO, OFLAG } from "../../engine/wasi/abi.ts";
import { Wasi } from "../../engine/wasi/mod.ts";
import { randoms } from "../support/randoms.ts";
import { ROOT, withSandbox } from "./sandbox.ts";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";

const ROUNDS = Number(process.env["WAFT_STORM"] ?? 4000);

/** The files below `folder` that this process has open; none where the system does not list them. */
function openBelow(folder: string): string[] {
  if (!existsSync("/proc/self/fd")) return [];
  return readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return ""; // the descriptor of the listing itself
    }
  }).filter((path) => path.startsWith(folder));
}

Deno.test("descriptors: random opening, closing and renumbering agree with a model, and none is left open", () => {
  let folder = "";
  withSandbox(({ guest, root, outside }) => {
    folder = outside;
    for (let k = 0; k < 10; k++) writeFileSync(join(root, `file${k}`), `content ${k}`);
    const model = new Map<number, string>();
    const random = randoms(7);
    for (let round = 0; round < ROUNDS; round++) {
      const fds = [...model.keys()];
      const some = fds[random(fds.length)];
      const action = random(10);
      if (some === undefined || (action < 4 && model.size < 200)) {
        const k = random(10);
        const { errno, fd } = guest.open(ROOT, `file${k}`, { rights: 2n });
        assert.equal(errno, 0);
        assert.ok(fd > ROOT && !model.has(fd), `descriptor ${fd} was given twice`);
        model.set(fd, `content ${k}`);
      } else if (action < 7) {
        assert.equal(guest.call("fd_close", some), 0);
        model.delete(some);
        assert.equal(guest.read(some).errno, ERRNO.badf);
        assert.equal(guest.call("fd_close", some), ERRNO.badf);
      } else if (action < 9) {
        const other = fds[random(fds.length)];
        assert.equal(guest.call("fd_renumber", some, other), 0);
        const text = model.get(some)!;
        if (some !== other) model.delete(some);
        model.set(other, text);
      } else {
        const { errno, text } = guest.read(some);
        // The file's position may be at its end.
        assert.equal(errno, 0);
        assert.ok(text === "" || text === model.get(some), `${some}: ${text}`);
      }
    }
  });
  assert.deepEqual(openBelow(folder), []);
});

Deno.test("descriptors: a guest that exhausts its own leaves others and the process unharmed", () => {
  let folder = "";
  withSandbox(({ guest, root, outside }) => {
    folder = outside;
    let count = 0;
    while (guest.open(ROOT, "a.txt").errno === 0) count++;
    assert.ok(count > 1000 && count < 4096, `${count} descriptors`);
    for (let k = 0; k < 100; k++) assert.equal(guest.open(ROOT, "a.txt").errno, ERRNO.mfile);
    // A refused call makes no file.
    assert.equal(guest.open(ROOT, "made", { oflags: OFLAG.creat }).errno, ERRNO.mfile);
    assert.equal(existsSync(join(root, "made")), false);
    assert.equal(guest.call("fd_close", 100), 0);
    assert.deepEqual(guest.open(ROOT, "a.txt"), { errno: 0, fd: 100 });
    assert.equal(guest.read(100).text, "alpha");
    if (!LACKS_POSIX_FILES) assert.ok(openBelow(folder).length > 1000);
  });
  assert.deepEqual(openBelow(folder), []);
});

const LOOPS = {
  sched_yield: `(import "wasi_snapshot_preview1" "sched_yield" (func $f (result i32)))
    (func (export "loop") (loop (drop (call $f)) (br 0)))`,
  clock_time_get: `(import "wasi_snapshot_preview1" "clock_time_get" (func $f (param i32 i64 i32) (result i32)))
    (func (export "loop") (loop (drop (call $f (i32.const 1) (i64.const 0) (i32.const 0))) (br 0)))`,
  random_get: `(import "wasi_snapshot_preview1" "random_get" (func $f (param i32 i32) (result i32)))
    (func (export "loop") (loop (drop (call $f (i32.const 0) (i32.const 65536))) (br 0)))`,
  fd_write: `(import "wasi_snapshot_preview1" "fd_write" (func $f (param i32 i32 i32 i32) (result i32)))
    (func (export "loop") (loop (drop (call $f (i32.const 77) (i32.const 0) (i32.const 0) (i32.const 0))) (br 0)))`,
  path_open: `(import "wasi_snapshot_preview1" "path_open"
      (func $f (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (func (export "loop") (loop (drop (call $f (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0)
      (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 16))) (br 0)))`,
};

for (const tier of ["optimizing", "baseline"] as const) {
  Deno.test(`${tier}: loops of WASI calls end at a deadline, at processor time, at a signal and without fuel`, async () => {
    const engine = NewEngine({ interruptible: true, fuel: true, tier });
    for (const [name, text] of Object.entries(LOOPS)) {
      const imports = text.slice(0, text.indexOf("(func (export"));
      const module = engine.compile(`(module ${imports} (memory (export "memory") 1)
        ${text.slice(imports.length)})`);
      const wasi = new Wasi();
      const instance = module.instantiate({}, { wasi_snapshot_preview1: wasi.imports });
      wasi.attach(instance);
      assert.throws(() => instance.call({ deadline: 10 }, "loop"), { message: "interrupted" }, name);
      assert.throws(() => instance.call({ processorTime: 10 }, "loop"), { message: "interrupted" }, name);
      assert.throws(() => instance.call({ fuel: 10_000 }, "loop"), { message: "out of fuel" }, name);
      const aborted = instance.callAsync({ signal: AbortSignal.timeout(10) }, "loop");
      await assert.rejects(aborted, { name: "TimeoutError" }, name);
      wasi.close();
    }
  });
}

/** Swaps a directory and a link that leads out, as fast as a process can. */
const SWAP = `while mv -T real swap 2>/dev/null && mv -T swap real && mv -T away swap && mv -T swap away; do :; done`;

/** Operations that change what `swap/NAME` names; `secret` is below the link's target. */
const CHANGES: Readonly<Record<string, (guest: Parameters<Parameters<typeof withSandbox>[0]>[0]["guest"]) => number>> =
  {
    unlink: (guest) => guest.onPath("path_unlink_file", ROOT, "swap/victim"),
    mkdir: (guest) => guest.onPath("path_create_directory", ROOT, "swap/made"),
    rmdir: (guest) => guest.onPath("path_remove_directory", ROOT, "swap/empty"),
    create: (guest) => guest.open(ROOT, "swap/made", { oflags: OFLAG.creat }).errno,
    truncate: (guest) => guest.open(ROOT, "swap/victim", { oflags: OFLAG.trunc }).errno,
    link: (guest) => guest.call("path_link", ROOT, 0, ...guest.string("a.txt"), ROOT, ...guest.string("swap/made")),
    steal: (guest) => guest.call("path_link", ROOT, 1, ...guest.string("swap/victim"), ROOT, ...guest.string("stolen")),
    symlink: (guest) => guest.call("path_symlink", ...guest.string("x"), ROOT, ...guest.string("swap/made")),
    rename: (guest) => guest.call("path_rename", ROOT, ...guest.string("swap/victim"), ROOT, ...guest.string("stolen")),
    into: (guest) => guest.call("path_rename", ROOT, ...guest.string("a.txt"), ROOT, ...guest.string("swap/made")),
    times: (guest) =>
      guest.call("path_filestat_set_times", ROOT, 1, ...guest.string("swap/victim"), 0n, 1_000_000_000n, 1 | 4),
  };

Deno.test({
  name: "a directory that is swapped for a link during a call lets no operation change anything outside",
  ignore: LACKS_POSIX_FILES,
}, async () => {
  let finished: Promise<unknown> = Promise.resolve();
  withSandbox(({ guest, root, outside }) => {
    const target = join(outside, "target");
    for (const folder of [target, join(root, "real")]) {
      mkdirSync(join(folder, "empty"), { recursive: true });
      writeFileSync(join(folder, "victim"), "untouched");
    }
    symlinkSync(target, join(root, "away"));
    const child = spawn("sh", ["-c", SWAP], { cwd: root, stdio: "ignore" });
    finished = new Promise((resolve) => child.on("exit", resolve));
    try {
      for (let round = 0; round < ROUNDS / 20; round++) {
        for (const [name, change] of Object.entries(CHANGES)) {
          const errno = change(guest);
          assert.deepEqual(readdirSync(target).sort(), ["empty", "victim"], `${name}: ${errno}`);
          assert.equal(readFileSync(join(target, "victim"), "utf8"), "untouched", name);
        }
        if (existsSync(join(root, "stolen"))) {
          assert.equal(readFileSync(join(root, "stolen"), "utf8").replace("untouched", ""), "");
          guest.onPath("path_unlink_file", ROOT, "stolen");
        }
      }
    } finally {
      child.kill("SIGKILL");
    }
  });
  await finished;
});
