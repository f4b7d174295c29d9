/**
 * Makes `waft` one program that needs no Deno: `deno task compile [--out FILE] [--target TRIPLE]`. In: cli.ts. Out: FILE (dist/waft by
 * default), run once: it must say its version and compute 10 Fibonacci numbers.
 *
 * `deno compile` puts the sources behind Deno's runtime binary (denort), which it downloads, unless DENORT_BIN names one. Where neither is to be
 * had, this says so; that is a failure only with CI set.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { VERSION } from "../project/version_string.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Files that programs find beside them by URL: workers, and what the registry shows. */
const INCLUDED = [
  "project/plugins/socket_worker.ts",
  "registry/publish/check_process.ts",
  "registry/site/static",
  "docs",
  "examples/plugins",
];

function fail(message: string): never {
  console.error(`error: ${message}`);
  process.exit(1);
}

const { values } = parseArgs({ options: { out: { type: "string" }, target: { type: "string" } } });
const out = values.out ?? join(ROOT, "dist", "waft");
mkdirSync(dirname(out), { recursive: true });
const args = ["compile", "--quiet", "--allow-all", "--exclude-unused-npm", "--output", out];
for (const path of INCLUDED) args.push("--include", path);
if (values.target !== undefined) args.push("--target", values.target);
const made = spawnSync(process.execPath, [...args, "cli.ts"], { cwd: ROOT, encoding: "utf8", timeout: 600_000 });
if (made.status !== 0) {
  if (/dl\.deno\.land|dns error|error sending request|denort/i.test(made.stderr)) {
    console.log("deno compile needs Deno's runtime binary, which cannot be fetched here: set DENORT_BIN to one.");
    process.exit(process.env["CI"] === undefined ? 0 : 1);
  }
  fail(`deno compile failed:\n${made.stderr}`);
}
if (values.target === undefined) {
  for (const [words, expected] of [[["--version"], VERSION], [["run", "examples/fib.wat", "10"], "55"]] as const) {
    const { status, stdout, stderr } = spawnSync(out, words, { cwd: ROOT, encoding: "utf8", timeout: 60_000 });
    if (status !== 0 || stdout.trim() !== expected) {
      fail(
        `${out} ${words.join(" ")} gave ${JSON.stringify(stdout)} and status ${status}, not "${expected}":\n${stderr}`,
      );
    }
  }
}
console.log(out);
