/**
 * Runs the engine's self-test in a child process before the first use on a system on which waft has not been run: a
 * crash there is a failed test here, and the program gets an error with one sentence. In: the host's facts. Out:
 * nothing, or an Error. A passed test leaves a file in the directory for temporary files, and is not repeated for the
 * same engine and JavaScript runtime.
 */
import { fingerprint } from "../base/fingerprint.ts";
import type { Host } from "./host.ts";
import { environmentVariable, nodeModule } from "./process.ts";

/** The variable that the child has, so that it does not test itself again. */
const VARIABLE = "WAFT_SELF_TEST";
const TIMEOUT_MS = 60_000;

/** The outcome of the child. */
export interface ChildOutcome {
  readonly status: number | null;
  readonly signal: string | null;
  readonly stderr: string;
}

/** The part of the process that the test needs; tests pass doubles. */
interface SelfTestWays {
  /** Runs the child; undefined if no process can be started. */
  run(): ChildOutcome | undefined;
  hasPassed(): boolean;
  notePass(): void;
}

/** Tests the engine unless that has been done. Throws an Error if the test fails. */
export function requireSelfTest(
  { name, arch, system }: Pick<Host, "name" | "arch" | "system">,
  ways: SelfTestWays = waysOf(name, arch),
): void {
  if (system.isProven || ways.hasPassed()) return;
  const outcome = ways.run();
  if (outcome === undefined) return; // without processes, the first use is the test
  if (outcome.status === 0) return ways.notePass();
  const reason = outcome.signal ?? outcome.stderr.trim().split("\n").at(-1) ?? `status ${outcome.status}`;
  throw new Error(
    `waft has not been run by its authors on ${system.title} for ${arch}, and its self-test fails here: ${reason}`,
  );
}

/** The value of `work`; undefined where Deno does not grant it the files, variables or programs that it uses. */
function whereAllowed<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

function waysOf(name: Host["name"], arch: Host["arch"]): SelfTestWays {
  const fs = nodeModule("node:fs");
  // Whole strings, because minified bundles find these files by their text (scripts/package/release_bundle.ts).
  const program = import.meta.url.endsWith(".ts")
    ? new URL("../api/self_test_program.ts", import.meta.url)
    : new URL("../api/self_test_program.js", import.meta.url);
  const version = process.versions[name === "deno" ? "deno" : name] ?? "";
  const key = fingerprint([program.href, version].join("\n")).toString(16);
  const marker = () => `${nodeModule("node:os").tmpdir()}/waft-self-test-${name}-${arch}-${key}`;
  return {
    run: () => whereAllowed(() => runChild(name, program)),
    hasPassed: () =>
      whereAllowed(() => environmentVariable(VARIABLE) !== undefined || fs.existsSync(marker())) === true,
    // Exclusive, because a link in the place of the file would create its target. On failure, the next process tests
    // again.
    notePass: () => void whereAllowed(() => fs.closeSync(fs.openSync(marker(), "wx", 0o600))),
  };
}

/** Runs the program on this JavaScript runtime; undefined if no process can be started. */
function runChild(name: Host["name"], program: URL): ChildOutcome | undefined {
  const { spawnSync } = nodeModule("node:child_process");
  const path = nodeModule("node:url").fileURLToPath(program);
  const { status, signal, stderr } = spawnSync(
    process.execPath,
    name === "deno" ? ["run", "--allow-all", "--no-check", "--quiet", path] : [path],
    { encoding: "utf8", timeout: TIMEOUT_MS, env: { ...process.env, [VARIABLE]: "running" } },
  );
  if (typeof stderr !== "string") return undefined; // no process was started
  return { status, signal, stderr };
}
