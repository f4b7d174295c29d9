/**
 * WASI and plugin files on macOS's C library: the tests of both run again on a double of it (c_library.ts), every
 * function of the translation is reached, and every error keeps its name.
 */
import { deepEqual, equal } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { DarwinCalls, symbolOf, variadicOf } from "../../engine/host/darwin_calls.ts";
import { ERRNO, type ErrnoName, errnoOf } from "../../engine/wasi/abi.ts";
import { DARWIN_ERRORS, DARWIN_FUNCTIONS } from "./c_library.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The tests of WASI that call every function; those of threads add only time. */
const WASI_TESTS = ["files", "paths", "poll", "process", "protected", "slashes", "sockets", "escape", "deadline"];

Deno.test({
  name: "the tests of WASI and of plugin files pass on macOS's calls, and reach every function",
  ignore: Deno.build.os !== "linux" || Deno.build.arch !== "x86_64",
  fn: async () => {
    const called = await Deno.makeTempFile();
    try {
      const preload = fileURLToPath(new URL("preload.ts", import.meta.url));
      const folders = [...WASI_TESTS.map((name) => `tests/wasi/${name}_test.ts`), "tests/plugins/kv_example_test.ts"];
      const { status, stdout } = spawnSync(
        Deno.execPath(),
        ["test", "-A", "--no-check", "--quiet", "--preload", preload, ...folders],
        {
          cwd: ROOT,
          encoding: "utf8",
          timeout: 600_000,
          env: { ...Deno.env.toObject(), NO_COLOR: "1", WAFT_DARWIN_CALLED: called },
        },
      );
      equal(status, 0, stdout.slice(-4000));
      const names = new Set(readFileSync(called, "utf8").split("\n"));
      deepEqual(DARWIN_FUNCTIONS.filter((name) => !names.has(name)), []);
    } finally {
      await Deno.remove(called);
    }
  },
});

Deno.test("every error of macOS that WASI names arrives under its name", () => {
  let result = 0;
  const calls = new DarwinCalls({
    arch: "arm64",
    call: () => result,
    view: () => new DataView(new ArrayBuffer(0)),
    scratch: 0,
  });
  DARWIN_ERRORS.forEach((name, k) => {
    result = -(k + 1);
    const errno = errnoOf(calls.call("fsync", 1));
    equal(errno, name in ERRNO ? ERRNO[name as ErrnoName] : ERRNO.io, `error ${k + 1}, ${name}`);
  });
  result = 5;
  equal(calls.call("fsync", 1), 5);
});

Deno.test("symbols of 64-bit inodes have their suffix on x64 only; variadic arguments are known", () => {
  equal(symbolOf("fstatat", "x64"), "fstatat$INODE64");
  equal(symbolOf("fstatat", "arm64"), "fstatat");
  equal(symbolOf("openat", "x64"), "openat");
  deepEqual(DARWIN_FUNCTIONS.filter((name) => variadicOf(name) !== undefined), ["fcntl", "openat"]);
  equal(variadicOf("openat"), 3);
  equal(variadicOf("fcntl"), 2);
});
