/** `deno task dump`: functions by name and index, and one-line errors. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";

const DUMP = fileURLToPath(new URL("./dump.ts", import.meta.url));
const FIB = fileURLToPath(new URL("../examples/fib.wat", import.meta.url));

function dump(...args: string[]) {
  return spawnSync(process.execPath, ["run", "-A", "--no-check", "--quiet", DUMP, ...args], { encoding: "utf8" });
}

Deno.test("dump prints a function by export name, by index, and all of them", () => {
  const { stdout, status } = dump(FIB, "fib");
  assert.equal(status, 0);
  assert.match(stdout, /^==== func 0 fib\nfunc 0 \(i32\) -> \(i32\)\n/);
  assert.equal(dump(FIB, "0").stdout, stdout);
  assert.equal(dump(FIB).stdout, stdout);
});

Deno.test("dump reports an unknown function and a file that is not a module in one line", () => {
  for (const args of [[FIB, "nothing"], [FIB, "1"], [DUMP], ["missing.wat"]]) {
    const { stdout, stderr, status } = dump(...args);
    assert.equal(status, 1, args.join(" "));
    assert.equal(stdout, "");
    assert.match(stderr, /^dump: .+\n$/, args.join(" "));
  }
});
