/**
 * The translation of Linux's calls to macOS's, on scripted results of the C library: errors keep their names, a call
 * ends with the first function that fails, and symbols are those of the processor.
 */
import { deepEqual, equal } from "node:assert/strict";
import { DarwinCalls, symbolOf, variadicOf } from "../../engine/host/calls/darwin_calls.ts";
import { ERRNO, type ErrnoName, errnoOf } from "../../engine/wasi/abi.ts";
import { DARWIN_ERRORS, DARWIN_FUNCTIONS } from "./c_library.ts";

/** Errors with the same number on macOS and Linux. */
const EBADF = 9, EINVAL = 22;

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

Deno.test("calls end with the first function that fails, and leave no descriptor open", () => {
  const results: number[] = [], called: string[] = [];
  const memory = new ArrayBuffer(4096);
  const { call } = new DarwinCalls({
    arch: "arm64",
    call: (name) => {
      called.push(name);
      return results.shift() ?? 0;
    },
    view: (address, bytes) => new DataView(memory, address, bytes),
    scratch: 0,
  });
  const rows: readonly (readonly [results: number[], make: () => number, result: number, called: string[]])[] = [
    [[-EBADF], () => call("accept4", 3, 0, 0, 0), -EBADF, ["accept"]],
    [[], () => call("fallocate", 3, 0, 0, 0), -EINVAL, []],
    [[-EBADF], () => call("fallocate", 3, 0, 0, 8), -EBADF, ["fstat"]],
    [[-EBADF], () => call("getdents64", 3, 0, 512), -EBADF, ["openat"]],
    [[5, -EBADF], () => call("getdents64", 3, 0, 512), -EBADF, ["openat", "fdopendir", "close"]],
    [[5, 0], () => call("getdents64", 3, 0, 512), -EINVAL, ["openat", "fdopendir", "close"]],
    [[5, 6, -EBADF], () => call("getdents64", 3, 0, 512), -EBADF, ["openat", "fdopendir", "readdir"]],
    [[256], () => call("getdents64", 3, 0, 16), -EINVAL, ["readdir"]], // no room for one entry
    [[0], () => call("getdents64", 3, 0, 64), 24, ["readdir"]], // the same entry, and the end
  ];
  for (const [given, make, result, names] of rows) {
    results.splice(0, results.length, ...given);
    called.length = 0;
    equal(make(), result, names.join());
    deepEqual(called, names);
  }
  new DataView(memory).setBigInt64(96, 100n, true); // st_size
  results.splice(0, results.length, 0);
  equal(call("fallocate", 3, 0, 0, 50), 0, "the file is long enough");
});

Deno.test("symbols of 64-bit inodes have their suffix on x64 only; variadic arguments are known", () => {
  equal(symbolOf("fstatat", "x64"), "fstatat$INODE64");
  equal(symbolOf("fstatat", "arm64"), "fstatat");
  equal(symbolOf("openat", "x64"), "openat");
  deepEqual(DARWIN_FUNCTIONS.filter((name) => variadicOf(name) !== undefined), ["fcntl", "openat"]);
  equal(variadicOf("openat"), 3);
  equal(variadicOf("fcntl"), 2);
});
