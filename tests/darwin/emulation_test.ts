/**
 * The machine code for macOS in the Unicorn emulator (emulate.py), for both processors. Needs Python with the package
 * `unicorn`: in the environment .cache/unicorn, which .ci/run creates, or of the system.
 */
import { equal } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PYTHON = [`${ROOT}.cache/unicorn/bin/python`, "python3"]
  .find((python) => spawnSync(python, ["-c", "import unicorn"]).status === 0);
if (PYTHON === undefined) console.log("left out: the emulation of macOS, because there is no Python with unicorn");

/** The number of checks for each processor. */
const CHECKS = 27;

Deno.test({
  name:
    "fault handlers, native threads, watchdog, C calls and entry code for macOS run rightly in an emulator, every instruction",
  ignore: PYTHON === undefined,
  fn: () => {
    const dump = fileURLToPath(new URL("dump_code.ts", import.meta.url));
    const code = spawnSync(Deno.execPath(), ["run", "-A", "--no-check", dump], { encoding: "utf8" });
    equal(code.status, 0, code.stderr);
    const program = fileURLToPath(new URL("emulate.py", import.meta.url));
    const { status, stdout, stderr } = spawnSync(PYTHON!, [program], { input: code.stdout, encoding: "utf8" });
    equal(status, 0, stdout + stderr);
    for (const arch of ["x64", "arm64"]) {
      equal(stdout.split("\n").filter((line) => line.startsWith(`${arch}: `)).length, CHECKS);
    }
  },
});
