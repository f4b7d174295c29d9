/**
 * The memory that the server of components leaves behind for each request. In: tests/component/fixtures/http.wat.
 *
 * Collections of young objects pause the server for as long as they copy objects. What a request leaves must die in the
 * first of them, not in the next major collection (D144).
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { CHILD_TIMEOUT, hostArguments, runtimeCommand } from "../support/host_arguments.ts";

const PROGRAM = fileURLToPath(new URL("../support/left_memory.ts", import.meta.url));
const FIXTURE = fileURLToPath(new URL("./fixtures/http.wat", import.meta.url));

/** Messages of the host leave about 1 KB each on Deno. */
const MAX_BYTES = 1800;

Deno.test({
  name: "what a request leaves behind dies in a collection of young objects",
  // The collector of Bun has no generation that a program can have collected alone, and the emulator takes no flags.
  ignore: "Bun" in globalThis || process.arch !== "x64",
  fn: () => {
    const words = hostArguments(PROGRAM);
    const flags = "Deno" in globalThis ? ["--v8-flags=--expose-gc"] : ["--expose-gc"];
    const [program, args] = runtimeCommand([...words.slice(0, -1), ...flags, PROGRAM, FIXTURE]);
    const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8", timeout: CHILD_TIMEOUT });
    assert.equal(status, 0, stderr);
    const left = JSON.parse(stdout) as number[];
    assert.ok(Math.min(...left) < MAX_BYTES, `each request leaves ${left.map(Math.round).join(", ")} bytes`);
  },
});
