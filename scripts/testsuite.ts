/**
 * Fetches the external test suites at their pinned commits (tests/support/suites.ts) and verifies them. In: a table of
 * suites. Out: one folder per suite below .cache/suites. Invariant: a folder whose digest differs is never left in
 * place.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { digestOf, fetchedFolder, hasSuite, type Suite, suiteNamed, SUITES } from "../tests/support/suites.ts";
import { readTaskLine } from "./task_options.ts";

const task = {
  name: "task testsuite",
  about: "Fetches the pinned test suites with git and verifies their digests.",
  operands: "[NAME…]",
  options: {
    from: { value: "REPOSITORY", help: "a mirror to fetch from instead of the suite's own repository" },
    check: { value: "FOLDER", help: "only verify that FOLDER contains the suite NAME" },
  },
} as const;
const { values: { from, check }, operands: names } = readTaskLine(task);
const suites = names.length === 0 ? SUITES : names.map(suiteNamed);

if (check !== undefined) {
  for (const suite of suites) if (!verify(suite, check)) process.exitCode = 1;
} else {
  for (const suite of suites) if (!bring(suite)) process.exitCode = 1;
}

/** Whether `folder` contains the pinned suite. Prints the answer. */
function verify(suite: Suite, folder: string): boolean {
  const found = hasSuite(suite, folder) ? digestOf(suite, folder) : "nothing";
  const same = found === suite.digest;
  console.log(
    same
      ? `${suite.name}: ${folder} is commit ${suite.commit}`
      : `${suite.name}: ${folder} is not commit ${suite.commit}: its digest is ${found}, not ${suite.digest}`,
  );
  return same;
}

/** Fetches a suite unless it is present; returns whether it is present now. */
function bring(suite: Suite): boolean {
  const folder = fetchedFolder(suite);
  if (hasSuite(suite, folder) && digestOf(suite, folder) === suite.digest) return verify(suite, folder);
  const fresh = `${folder}.new`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true });
  try {
    git(fresh, "init", "--quiet");
    git(fresh, "fetch", "--quiet", "--depth=1", from ?? suite.repository, suite.commit);
    git(fresh, "checkout", "--quiet", "--detach", "FETCH_HEAD");
  } catch (error) {
    console.error(`${suite.name}: ${(error as Error).message}`);
    rmSync(fresh, { recursive: true, force: true });
    return false;
  }
  for (const path of [".git", ...suite.omitted]) rmSync(join(fresh, path), { recursive: true, force: true });
  if (!verify(suite, fresh)) {
    rmSync(fresh, { recursive: true, force: true });
    return false;
  }
  mkdirSync(dirname(folder), { recursive: true });
  rmSync(folder, { recursive: true, force: true });
  renameSync(fresh, folder);
  console.log(`${suite.name}: ${folder}`);
  return true;
}

/** Runs git in `folder`. Throws an Error with its last line. */
function git(folder: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync("git", args, { cwd: folder, encoding: "utf8" });
  if (error !== undefined) throw new Error(`git is needed to fetch test suites: ${error.message}`);
  if (status !== 0) throw new Error(`git ${args[0]}: ${stderr.trim().split("\n").at(-1)}`);
}
