/** Calls of C functions through machine code, with this system's own C library: results, errors, variadic functions. */
import { equal, ok } from "node:assert/strict";
import { cCalls } from "./c_calls.ts";
import { currentHost } from "../current.ts";

const ignore = Deno.build.os !== "linux";

Deno.test({
  name: "C functions give their results, or the negative error number, in one call",
  ignore,
  fn: () => {
    const host = currentHost();
    const call = cCalls(host);
    const { openat, close, lseek, getpid, abs } = host.functionAddresses(["openat", "close", "lseek", "getpid", "abs"]);
    const path = host.reserve(host.pageSize, 3);
    const bytes = new Uint8Array(host.view(path, 64));
    const open = { address: openat, isInt: true };
    const closing = { address: close, isInt: true };
    bytes.set(new TextEncoder().encode("/dev/null\0"));
    const fd = call(open, [-100, path, 0x80000]);
    ok(fd > 2);
    equal(call({ address: lseek, isInt: false }, [fd, 0, 1]), 0);
    equal(call({ address: lseek, isInt: false }, [fd, 0, 99]), -22); // EINVAL
    equal(call(closing, [fd]), 0);
    equal(call(closing, [fd]), -9); // EBADF
    bytes.set(new TextEncoder().encode("/none\0"));
    equal(call(open, [-100, path, 0]), -2); // ENOENT
    equal(call({ address: getpid, isInt: true }, []), Deno.pid);
    equal(call({ address: abs, isInt: true }, [-2147483647n]), 2147483647);
    host.release(path, host.pageSize);
  },
});

Deno.test({
  name: "a function that the C library lacks is named",
  ignore,
  fn: () => {
    let message = "";
    try {
      currentHost().functionAddresses(["no_such_function"]);
    } catch (error) {
      message = (error as Error).message;
    }
    equal(message, "The C library of this Linux lacks the function no_such_function");
  },
});
