/**
 * npm packages that know nothing of limits are stopped by `limit` in the same thread, and work afterwards; a checkpoint
 * brings their state back.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";
import { installPackages } from "../support/test_packages.ts";

const PROGRAM = fileURLToPath(new URL("./limited_program.ts", import.meta.url));

for (const name of ["quickjs-emscripten", "sql.js", "@extism/extism", "@resvg/resvg-wasm"]) {
  Deno.test(`${name}: endless work ends at the deadline, and the package goes on working`, () => {
    const folder = installPackages(fileURLToPath(new URL("./packages/", import.meta.url)));
    const { status, stdout, stderr } = spawnSync(process.execPath, [...hostArguments(PROGRAM), folder, name], {
      encoding: "utf8",
    });
    assert.equal(status, 0, `${name}: ${stderr}`);
    const { kind, code, share, before, after, counts } = JSON.parse(stdout);
    assert.deepEqual([kind, code], ["RuntimeError", "interrupted"]);
    assert.ok(share >= 1, `${share} of the deadline`);
    assert.deepEqual(after, before);
    assert.deepEqual(counts, [counts[0], counts[0], counts[0]], "a checkpoint brings the state back");
  });
}
