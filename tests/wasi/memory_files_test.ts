/**
 * Files and streams in memory: random calls have the results that they have on files of the system, limits, standard
 * streams, and programs that are run with them (runProgram), modules with threads included.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { ERRNO, FDFLAG, OFLAG, RIGHT } from "../../engine/wasi/abi.ts";
import { Wasi, type WasiOptions } from "../../engine/wasi/mod.ts";
import { runProgram } from "../../engine/wasi/run_program.ts";
import { NewEngine } from "../../engine/api/engine.ts";
import { randoms } from "../support/randoms.ts";
import { BUFFER, RawGuest, RESULT, VECTOR } from "./raw_guest.ts";

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** The only preopened directory, after the standard streams. */
const ROOT = 3;
const NAMES = ["a", "b", "c", "a/", "d/a", "d/b", ".", "d", "d/../a", "d/e/f", "x/y", "c/a", "../a", "d/./b"];

/** Makes random calls; returns a line for each, with the results that do not depend on the file system. */
function storm(guest: RawGuest, seed: number, steps: number): string[] {
  const random = randoms(seed);
  const lines: string[] = [];
  const fds = [ROOT];
  const some = () => fds[random(fds.length)];
  const name = () => NAMES[random(NAMES.length)];
  const path = () => guest.string(name());
  const vector = (length: number) => {
    guest.view.setUint32(VECTOR, BUFFER, true);
    guest.view.setUint32(VECTOR + 4, length, true);
  };
  const listing = (fd: number): string => {
    const errno = guest.call("fd_readdir", fd, BUFFER, 4096, 0n, RESULT);
    if (errno !== 0) return `readdir ${errno}`;
    const found: string[] = [];
    for (let at = BUFFER; at < BUFFER + guest.u32();) {
      const length = guest.view.getUint32(at + 16, true);
      found.push(`${guest.text(at + 24, length)}:${guest.view.getUint8(at + 20)}`);
      at += 24 + length;
    }
    return `readdir ${found.sort().join(" ")}`;
  };
  const status = (what: string, errno: number): string => {
    const isFile = errno === 0 && guest.view.getUint8(RESULT + 16) !== 3;
    const rest = isFile ? ` ${guest.u64(RESULT + 24)} links, ${guest.u64(RESULT + 32)} bytes` : "";
    return `${what} ${errno}${errno === 0 ? ` type ${guest.view.getUint8(RESULT + 16)}` : ""}${rest}`;
  };
  const actions: (() => string)[] = [
    () => {
      const oflags = random(16);
      const rights = [RIGHT.fd_read, RIGHT.fd_write, RIGHT.fd_read | RIGHT.fd_write, 0x1fffffff][random(4)];
      const fdflags = random(4) === 0 ? FDFLAG.append : 0;
      const { errno, fd } = guest.open(some(), name(), {
        oflags,
        rights: BigInt(rights | RIGHT.fd_seek | RIGHT.fd_tell | RIGHT.fd_filestat_get | RIGHT.fd_readdir),
        fdflags,
        follow: random(2) === 0,
      });
      if (errno === 0) fds.push(fd);
      return `open ${oflags} ${errno} ${fd}`;
    },
    () => {
      const fd = some();
      if (fd === ROOT) return listing(fd);
      fds.splice(fds.indexOf(fd), 1);
      return `close ${guest.call("fd_close", fd)}`;
    },
    () => {
      const length = random(300);
      guest.bytes(BUFFER, length).fill(65 + random(26));
      vector(length);
      const errno = guest.call("fd_write", some(), VECTOR, 1, RESULT);
      return `write ${errno} ${errno === 0 ? guest.u32() : ""}`;
    },
    () => {
      const length = random(300);
      guest.bytes(BUFFER, length).fill(97 + random(26));
      vector(length);
      const errno = guest.call("fd_pwrite", some(), VECTOR, 1, BigInt(random(500)), RESULT);
      return `pwrite ${errno} ${errno === 0 ? guest.u32() : ""}`;
    },
    () => {
      vector(random(300));
      const errno = guest.call("fd_read", some(), VECTOR, 1, RESULT);
      return `read ${errno} ${errno === 0 ? guest.text(BUFFER, guest.u32()) : ""}`;
    },
    () => {
      vector(random(300));
      const errno = guest.call("fd_pread", some(), VECTOR, 1, BigInt(random(500)), RESULT);
      return `pread ${errno} ${errno === 0 ? guest.text(BUFFER, guest.u32()) : ""}`;
    },
    () => {
      const errno = guest.call("fd_seek", some(), BigInt(random(400) - 100), random(3), RESULT);
      return `seek ${errno} ${errno === 0 ? guest.u64() : ""}`;
    },
    () => `size ${guest.call("fd_filestat_set_size", some(), BigInt(random(600)))}`,
    () => `allocate ${guest.call("fd_allocate", some(), BigInt(random(300)), BigInt(random(300)))}`,
    () => status("fd stat", guest.call("fd_filestat_get", some(), RESULT)),
    () => status("stat", guest.call("path_filestat_get", some(), random(2), ...path(), RESULT)),
    () => `mkdir ${guest.onPath("path_create_directory", some(), name())}`,
    () => `rmdir ${guest.onPath("path_remove_directory", some(), name())}`,
    () => `unlink ${guest.onPath("path_unlink_file", some(), name())}`,
    () => `rename ${guest.call("path_rename", some(), ...path(), some(), ...path())}`,
    () => `link ${guest.call("path_link", some(), 0, ...path(), some(), ...path())}`,
    () => `symlink ${guest.call("path_symlink", ...path(), some(), ...path())}`,
    () => {
      const errno = guest.call("path_readlink", some(), ...path(), BUFFER, random(20), RESULT);
      return `readlink ${errno} ${errno === 0 ? guest.text(BUFFER, guest.u32()) : ""}`;
    },
    () => listing(some()),
  ];
  for (let step = 0; step < steps; step++) {
    const k = random(actions.length);
    lines.push(`${step}: ${actions[k]()}`);
  }
  return lines;
}

Deno.test({
  name: "random calls on files in memory have the results of those on files of Linux",
  ignore: process.platform !== "linux",
  fn: () => {
    for (let seed = 1; seed <= 30; seed++) {
      const folder = mkdtempSync(join(tmpdir(), "waft-memory-files-"));
      try {
        mkdirSync(join(folder, "root"));
        const native = new RawGuest({ preopens: [{ host: join(folder, "root"), guest: "/" }] });
        const memory = new RawGuest({ files: {} });
        const [expected, actual] = [native, memory].map((guest) => storm(guest, seed, 400));
        const at = expected.findIndex((line, k) => line !== actual[k]);
        assert.deepEqual(
          actual.slice(Math.max(0, at - 5), at + 1),
          expected.slice(Math.max(0, at - 5), at + 1),
          `${seed}`,
        );
        native.wasi.close();
        memory.wasi.close();
      } finally {
        rmSync(folder, { recursive: true });
      }
    }
  },
});

Deno.test("files by path are given, changed and read back", () => {
  const guest = new RawGuest({ files: { "a.txt": "one", "d/e/b": Uint8Array.of(1, 2) } });
  assert.deepEqual(guest.stat(ROOT, "d/e/b").size, 2n);
  const { fd } = guest.open(ROOT, "a.txt");
  assert.deepEqual(guest.read(fd), { errno: 0, text: "one" });
  const made = guest.open(ROOT, "d/new", { oflags: OFLAG.creat }).fd;
  guest.bytes(BUFFER, 3).set([55, 56, 57]);
  guest.view.setUint32(VECTOR, BUFFER, true);
  guest.view.setUint32(VECTOR + 4, 3, true);
  assert.equal(guest.call("fd_write", made, VECTOR, 1, RESULT), 0);
  assert.equal(guest.onPath("path_unlink_file", ROOT, "d/e/b"), 0);
  assert.deepEqual({ ...guest.wasi.files }, {
    "a.txt": new TextEncoder().encode("one"),
    "d/new": new TextEncoder().encode("789"),
  });
  guest.wasi.close();
});

Deno.test("files and output in memory have a limit together, which removed files give back", () => {
  const guest = new RawGuest({ files: {}, stdout: "collect", maxFileBytes: 1 << 16 });
  const write = (fd: number, length: number) => {
    guest.view.setUint32(VECTOR, BUFFER, true);
    guest.view.setUint32(VECTOR + 4, length, true);
    return guest.call("fd_write", fd, VECTOR, 1, RESULT);
  };
  const NOSPC = 51;
  for (let round = 0; round < 10; round++) {
    const { fd } = guest.open(ROOT, "file", { oflags: OFLAG.creat });
    assert.equal(write(fd, 50_000), 0);
    assert.equal(write(fd, 50_000), NOSPC);
    assert.equal(write(1, 20_000), NOSPC);
    assert.equal(guest.onPath("path_unlink_file", ROOT, "file"), 0);
    assert.equal(guest.call("fd_close", fd), 0);
  }
  assert.equal(write(1, 20_000), 0);
  assert.equal(guest.wasi.stdout.length, 20_000);
  let files = 0;
  while (guest.open(ROOT, `file ${files}`, { oflags: OFLAG.creat | OFLAG.excl }).errno === 0) files++;
  assert.ok(files > 10 && files < 128, `${files} empty files`);
  guest.wasi.close();
});

Deno.test("standard streams: bytes, text, parts on demand, receivers", () => {
  const taken: number[] = [];
  function* parts() {
    for (const part of ["ab", "", "cde"]) {
      taken.push(part.length);
      yield part;
    }
  }
  const seen: string[] = [];
  const guest = new RawGuest({ stdin: parts(), stdout: (bytes) => void seen.push(text(bytes)), stderr: "collect" });
  assert.deepEqual(taken, []);
  assert.deepEqual(guest.read(0, 1), { errno: 0, text: "a" });
  assert.deepEqual(taken, [2]);
  assert.deepEqual(guest.read(0), { errno: 0, text: "b" });
  assert.deepEqual(guest.read(0), { errno: 0, text: "cde" });
  assert.deepEqual(guest.read(0), { errno: 0, text: "" });
  const write = (fd: number, word: string) => {
    const [at, length] = guest.string(word);
    guest.view.setUint32(VECTOR, at, true);
    guest.view.setUint32(VECTOR + 4, length, true);
    return guest.call("fd_write", fd, VECTOR, 1, RESULT);
  };
  assert.deepEqual(
    [write(1, "x"), write(1, "yz"), write(2, "e"), write(2, "f"), write(0, "n")],
    [0, 0, 0, 0, 76].map((
      errno,
      k,
    ) => k === 4 ? 8 : errno),
  );
  assert.deepEqual([seen, text(guest.wasi.stderr), guest.wasi.stdout.length], [["x", "yz"], "ef", 0]);
  assert.equal(guest.call("fd_seek", 0, 0n, 0, RESULT), 70, "a stream has no position");
  guest.wasi.close();
});

Deno.test("hard links count against the limit, and give their bytes back", () => {
  const guest = new RawGuest({ files: { a: "" }, maxFileBytes: 8192 });
  const link = (name: string) => guest.call("path_link", ROOT, 0, ...guest.string("a"), ROOT, ...guest.string(name));
  const fill = () => {
    let count = 0;
    while (count < 100 && link(`l${count}`) === 0) count++;
    return count;
  };
  const count = fill();
  assert.ok(count > 4 && count < 20, `${count} links`);
  assert.equal(link("next"), ERRNO.nospc);
  for (let k = 0; k < count; k++) {
    assert.equal(guest.call("path_unlink_file", ROOT, ...guest.string(`l${k}`)), 0);
  }
  assert.equal(fill(), count);
  guest.wasi.close();
});

Deno.test("a byte order mark is a part of a name", () => {
  const guest = new RawGuest({ files: { a: "plain" } });
  const mark = "\uFEFF";
  const create = (path: string) => guest.open(ROOT, path, { oflags: OFLAG.creat | OFLAG.excl }).errno;
  assert.deepEqual([mark, mark + mark].map((marks) => create(`${marks}a`)), [0, 0]);
  for (const name of [`${mark}..`, `${mark}${mark}..`, `${mark}${mark}.`]) {
    assert.equal(guest.call("path_create_directory", ROOT, ...guest.string(name)), 0);
    assert.equal(create(`${name}/b`), 0);
  }
  assert.deepEqual(Object.keys(guest.wasi.files), [
    "a",
    `${mark}a`,
    `${mark}${mark}a`,
    `${mark}../b`,
    `${mark}${mark}../b`,
    `${mark}${mark}./b`,
  ]);
  guest.wasi.close();
});

Deno.test("no name has a backslash, which would lead a program on Windows out of the folder of its files", () => {
  const guest = new RawGuest({ files: { a: "plain" } });
  const name = guest.string("..\\b");
  assert.equal(guest.open(ROOT, "..\\b", { oflags: OFLAG.creat }).errno, ERRNO.inval);
  assert.equal(guest.open(ROOT, "..\\b", { oflags: 0 }).errno, ERRNO.noent);
  assert.equal(guest.call("path_create_directory", ROOT, ...name), ERRNO.inval);
  assert.equal(guest.call("path_rename", ROOT, ...guest.string("a"), ROOT, ...name), ERRNO.inval);
  assert.equal(guest.call("path_link", ROOT, 0, ...guest.string("a"), ROOT, ...name), ERRNO.inval);
  assert.equal(guest.call("path_symlink", ...guest.string("a"), ROOT, ...name), ERRNO.inval);
  assert.deepEqual(Object.keys(guest.wasi.files), ["a"]);
  guest.wasi.close();
});

Deno.test("a list of many entries takes linear work", () => {
  const count = 20_000;
  const files = Object.fromEntries(Array.from({ length: count }, (_, k) => [`file${k}`, ""]));
  const guest = new RawGuest({ files });
  // Each entry of the directory's map that is visited while it is listed.
  let visits = 0;
  const { next } = Object.getPrototypeOf(new Map().entries());
  const iterator = Object.getPrototypeOf(new Map().entries());
  iterator.next = function (this: unknown) {
    visits++;
    return next.call(this);
  };
  try {
    assert.equal(guest.call("fd_readdir", ROOT, BUFFER, 1000, 0n, RESULT), 0);
  } finally {
    iterator.next = next;
  }
  assert.ok(visits < 3 * count, `${visits} visits`);
  guest.wasi.close();
});

Deno.test("mistakes in the options are refused with the option's name", () => {
  const rows: readonly (readonly [options: Record<string, unknown>, message: RegExp])[] = [
    [{ stdin: 5 }, /option stdin must be bytes or text, not number/],
    [{ stdin: new Blob(["x"]).stream() }, /option stdin cannot be a stream.*runProgram/],
    [{ stdout: "gather" }, /option stdout is a function that gets bytes, or "collect"/],
    [{ stderr: 3 }, /option stderr is a function/],
    [{ stdio: "none", stdin: "x" }, /option stdio is "none"/],
    [{ files: { "a/": "x" } }, /"a\/" is not the path of a file/],
    [{ files: { "../a": "x" } }, /"..\/a" is not the path of a file/],
    [{ files: { "a\\b": "x" } }, /"a\\b" is not the path of a file/],
    [{ files: { a: "x".repeat(3000) }, maxFileBytes: 3000 }, /maxFileBytes, 3000, has no room for the file "a"/],
    [{ files: { "a/b/c/d": "x" }, maxFileBytes: 1500 }, /maxFileBytes, 1500, has no room for the file "a\/b\/c\/d"/],
    [{ files: {}, maxFileBytes: 0 }, /maxFileBytes, 0, has no room for the directory of the files/],
    [{ files: { "": "x" } }, /"" is not the path of a file/],
    [{ files: { a: "x", "a/b": "y" } }, /"a\/b" leads through a file/],
    [{ files: { "a/b": "x", "/a//b": "y" } }, /"\/a\/\/b" is given twice/],
    [{ files: { a: 5 } }, /file "a" must be bytes or text/],
    [{ files: [] }, /option files/],
    [{ stdout: "collect", maxFileBytes: -1 }, /option maxFileBytes/],
  ];
  for (const [options, message] of rows) assert.throws(() => new Wasi(options as WasiOptions), { message });
});

/** A program that copies standard input to standard output and a file, and exits with the number of its arguments. */
const COPY = `(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 512) "copy")
  (func (export "_start")
    (drop (call $open (i32.const 3) (i32.const 0) (i32.const 512) (i32.const 4) (i32.const 1) (i64.const 64)
      (i64.const 0) (i32.const 0) (i32.const 32)))
    (i32.store (i32.const 0) (i32.const 1024))
    (block $end (loop $more
      (i32.store (i32.const 4) (i32.const 100))
      (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 4)))
      (br_if $end (i32.eqz (i32.load (i32.const 4))))
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
      (drop (call $write (i32.load (i32.const 32)) (i32.const 0) (i32.const 1) (i32.const 16)))
      (br $more)))
    (drop (call $args (i32.const 0) (i32.const 4)))
    (call $exit (i32.load (i32.const 0)))))`;

Deno.test("runProgram: input, output, files, status", async () => {
  const input = "0123456789".repeat(50);
  const inputs = [
    input,
    new TextEncoder().encode(input),
    [input.slice(0, 7), input.slice(7)],
    new Blob([input]).stream(),
  ];
  for (const stdin of inputs) {
    const result = await runProgram(COPY, { args: ["a", "b"], stdin, files: { other: "x" } });
    assert.deepEqual([result.status, result.stdout, result.stderr, result.trap], [3, input, "", undefined]);
    assert.deepEqual(Object.entries(result.files).map(([name, bytes]) => [name, text(bytes)]), [
      ["other", "x"],
      ["copy", input],
    ]);
    assert.deepEqual(result.stdoutBytes, new TextEncoder().encode(input));
  }
});

Deno.test("runProgram: traps and limits are part of the result, with the output before; mistakes reject", async () => {
  const program = (body: string) =>
    `(module
      (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
      (memory (export "memory") 1)
      (data (i32.const 0) "\\08\\00\\00\\00\\02\\00\\00\\00hi")
      (func (export "_start") (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 16))) ${body}))`;
  const outcome = async (body: string, limits = {}) => {
    const { status, stderr, trap } = await runProgram(program(body), { limits });
    return [status, stderr, trap?.message];
  };
  assert.deepEqual(await outcome(""), [0, "hi", undefined]);
  assert.deepEqual(await outcome("unreachable"), [134, "hi", "unreachable"]);
  assert.deepEqual(await outcome("(loop (br 0))", { deadline: 1_000 }), [134, "hi", "interrupted"]);
  assert.deepEqual(await outcome("(loop (br 0))", { fuel: 10_000 }), [134, "hi", "out of fuel"]);
  assert.deepEqual(await outcome("(drop (memory.grow (i32.const 1))) unreachable", { maxMemoryPages: 1 }), [
    134,
    "hi",
    "unreachable",
  ]);
  await assert.rejects(runProgram("(module)"), { message: /no function _start/ });
  await assert.rejects(runProgram("(modul)"), { name: "MalformedError" });
  await assert.rejects(runProgram(COPY, { arguments: [] } as object), { message: /option of a program.*arguments/ });
  await assert.rejects(runProgram(COPY, { limits: { time: 1 } as object }), { message: /limit of a program.*time/ });
  await assert.rejects(runProgram(`(module (import "env" "f" (func)) (func (export "_start")))`), {
    name: "LinkError",
  });
});

Deno.test("runProgram: a program with threads has its files and streams, too", async () => {
  const program = `(module
    (import "env" "memory" (memory 1 1 shared))
    (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (data (i32.const 0) "\\08\\00\\00\\00\\02\\00\\00\\00hi")
    (func (export "wasi_thread_start") (param i32 i32)
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
      (i32.atomic.store (i32.const 64) (i32.const 1))
      (drop (memory.atomic.notify (i32.const 64) (i32.const 1))))
    (func (export "_start")
      (drop (call $spawn (i32.const 0)))
      (drop (memory.atomic.wait32 (i32.const 64) (i32.const 0) (i64.const -1)))))`;
  const { status, stdout, files } = await runProgram(program, { files: { a: "b" } });
  assert.deepEqual([status, stdout, text(files["a"])], [0, "hi", "b"]);
});

Deno.test("a module is shared by programs, each with files of its own", () => {
  const module = NewEngine().compile(COPY);
  for (const input of ["one", "two"]) {
    const wasi = new Wasi({ stdin: input, stdout: "collect", files: {} });
    const instance = module.instantiate({}, { wasi_snapshot_preview1: wasi.imports });
    wasi.attach(instance);
    assert.throws(() => instance.call({}, "_start"), { name: "WasiExit" });
    assert.deepEqual([text(wasi.stdout), text(wasi.files["copy"])], [input, input]);
    wasi.close();
  }
});
