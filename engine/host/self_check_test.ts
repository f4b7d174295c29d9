/** The self-test of systems on which waft has not been run: its conditions, its reports and the program itself. */
import { deepEqual, equal, throws } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ChildOutcome, requireSelfTest } from "./self_check.ts";
import { SYSTEMS } from "./systems/systems.ts";
import { CHILD_TIMEOUT } from "../../tests/support/host_arguments.ts";

const MAC = { name: "deno", arch: "arm64", system: SYSTEMS.darwin } as const;
const GOOD: ChildOutcome = { status: 0, signal: null, stderr: "" };

/** Runs the test with a child of this outcome; returns its actions. */
function steps(
  outcome: ChildOutcome | undefined,
  passed = false,
  machine: Parameters<typeof requireSelfTest>[0] = MAC,
) {
  const done: string[] = [];
  requireSelfTest(machine, {
    run: () => {
      done.push("run");
      return outcome;
    },
    hasPassed: () => passed,
    notePass: () => void done.push("note"),
  });
  return done;
}

Deno.test("the self-test runs once, and only where waft has not been run", () => {
  deepEqual(steps(GOOD), ["run", "note"]);
  deepEqual(steps(GOOD, true), []);
  deepEqual(steps(GOOD, false, { ...MAC, system: SYSTEMS.linux }), []);
  deepEqual(steps(undefined), ["run"]);
});

Deno.test("a self-test that fails or crashes is one sentence", () => {
  const message = "waft has not been run by its authors on macOS for arm64, and its self-test fails here: ";
  throws(() => steps({ status: null, signal: "SIGKILL", stderr: "" }), { message: `${message}SIGKILL` });
  throws(() => steps({ status: 1, signal: null, stderr: "at x\nError: a call gave 4\n" }), {
    message: `${message}Error: a call gave 4`,
  });
});

Deno.test({
  name: "a process on an unproven system tests the engine in a child, and the next one does not",
  // The engine starts the child itself, and a system cannot start programs of another processor.
  ignore: Deno.build.os !== "linux" || Deno.env.has("WAFT_EMULATOR"),
  fn: () => {
    const folder = mkdtempSync(join(tmpdir(), "waft-self-"));
    try {
      const program = `
        import { SYSTEMS } from "${new URL("./systems/systems.ts", import.meta.url).href}";
        SYSTEMS.linux.isProven = false;
        const { currentHost } = await import("${new URL("./current.ts", import.meta.url).href}");
        console.log(currentHost().os);
      `;
      const once = (...permissions: string[]) =>
        spawnSync(Deno.execPath(), ["run", "--no-prompt", ...permissions, "--no-check", "-"], {
          input: program,
          encoding: "utf8",
          timeout: CHILD_TIMEOUT,
          env: { ...Deno.env.toObject(), NO_COLOR: "1", TMPDIR: folder },
        });
      for (const permissions of [["--allow-ffi"], ["--allow-ffi", "--allow-env"]]) {
        const { stdout, stderr } = once(...permissions);
        equal(stdout + stderr, "linux\n", "without files and processes, the first use is the test");
      }
      deepEqual(readdirSync(folder), []);
      const first = once("-A");
      equal(first.stdout + first.stderr, "linux\n");
      const [marker] = readdirSync(folder);
      equal(marker?.startsWith("waft-self-test-deno-"), true);
      equal(once("-A").stdout, "linux\n");
      // Another user can put a link there where all users share the directory.
      const target = join(folder, "target");
      rmSync(join(folder, marker!));
      symlinkSync(target, join(folder, marker!));
      equal(once("-A").stdout, "linux\n");
      equal(existsSync(target), false);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
});
