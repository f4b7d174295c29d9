/**
 * Follows examples/components/README.md: runs its commands in a copy of the directory and compares their output with
 * the next block. Forwards more bytes than pipes hold, and checks that an error of an output reaches the exit status.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { CHILD_TIMEOUT, hostCommand } from "../support/host_arguments.ts";
import { removeFolder } from "../support/remove_folder.ts";

const EXAMPLES = fileURLToPath(new URL("../../examples/components", import.meta.url));
const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../../examples/components/greet.ts", import.meta.url));
const [, ...SECTIONS] = readFileSync(join(EXAMPLES, "README.md"), "utf8").split(/^## /m);

/** A command of a shell that runs a program of the tree on this host. */
function command(path: string): string {
  const [program, first] = hostCommand(path);
  return [program, ...first].map((word) => `"${word}"`).join(" ");
}

/** The commands of the README: `waft`, and `deno run -A greet.ts`, whose packages are those of the tree. */
const COMMANDS = `waft() { ${command(CLI)} "$@"; }
  deno() { test "$*" = "run -A greet.ts $4 $5"; shift 3; ${command(PROGRAM)} "$@"; }
`;

/** Runs lines of a shell in `folder`. */
function sh(lines: string, folder: string): string {
  const { status, stdout, stderr } = spawnSync("sh", ["-ec", COMMANDS + lines], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1", WAFT_HOME: join(folder, "home") },
    timeout: 4 * CHILD_TIMEOUT,
  });
  assert.equal(status, 0, `${lines}\n${stdout}${stderr}`);
  return stdout;
}

function inCopy(work: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "waft-examples-"));
  try {
    cpSync(EXAMPLES, folder, { recursive: true });
    work(folder);
  } finally {
    removeFolder(folder);
  }
}

Deno.test("examples/components/README.md: every command prints the text of the next block", () => {
  inCopy((folder) => {
    for (const section of SECTIONS) {
      const blocks = [...section.matchAll(/^```(sh|text)\n([\s\S]*?)^```$/gm)];
      assert.deepEqual(blocks.map(([, language]) => language), ["sh", "text"], section);
      const [[, , commands], [, , text]] = blocks;
      assert.equal(sh(commands, folder), text);
    }
  });
});

/** More bytes than pipes and buffers of streams hold, all values among them. */
const MANY = new Uint8Array(3_000_000).map((_, k) => k * 7 + (k >> 9));

Deno.test("examples/components/forward.wat forwards every byte, and nothing of an empty input", () => {
  inCopy((folder) => {
    for (const input of [MANY, new Uint8Array(0)]) {
      writeFileSync(join(folder, "input"), input);
      // Pipes on both sides: `cat` reads while the component writes.
      sh("cat input | waft run forward.wat | cat > output", folder);
      assert.ok(readFileSync(join(folder, "output")).equals(input));
    }
  });
});

Deno.test({
  name: "examples/components/forward.wat fails if its output cannot be written",
  ignore: process.platform !== "linux", // /dev/full
  fn: () => {
    inCopy((folder) => {
      sh(`if echo text | waft run forward.wat > /dev/full; then exit 1; else test $? = 1; fi`, folder);
    });
  },
});
