/** Plugins behave as with Extism's JavaScript SDK on the host's WebAssembly: outputs, errors, traps, state. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";
import { installPackages } from "../support/test_packages.ts";

const PROGRAM = fileURLToPath(new URL("./compared_program.ts", import.meta.url));
const PACKAGES = fileURLToPath(new URL("../webassembly/packages/", import.meta.url));

Deno.test("the same outcomes as with Extism's JavaScript SDK", () => {
  const args = [...hostArguments(PROGRAM), installPackages(PACKAGES)];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  const results = JSON.parse(stdout) as { readonly name: string; readonly sdk: string; readonly own: string }[];
  assert.equal(results.length, 17);
  assert.deepEqual(results.map(({ name, own }) => [name, own]), results.map(({ name, sdk }) => [name, sdk]));
  assert.ok(results.some(({ own }) => own.startsWith("text ")) && results.some(({ own }) => own === "unreachable"));
});
