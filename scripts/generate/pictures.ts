/**
 * The pictures of the documentation: `deno task pictures`. In: the pages that `waft explore` and `waft profile` write
 * for two programs, and the output of other commands. Out: registry/site/static/NAME.png, the first screen of each page
 * in Chromium, and NAME.svg, a terminal with a command's output.
 */
import { strict as assert } from "node:assert";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium, type Page } from "playwright-core";
import { CHROMIUM } from "../../tests/browser/browser.ts";
import { readTaskLine } from "../task_options.ts";
import { terminalPicture } from "./terminal_picture.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The program of the profile: two filters over a picture, one of which calls a function for each point. */
const FILTERS = `(module (memory 16)
  (func $gamma (param $x i32) (result i32) (local $k i32)
    (loop $again
      (local.set $x (i32.div_u (i32.mul (local.get $x) (local.get $x)) (i32.const 251)))
      (br_if $again (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 6))))
    (local.get $x))
  (func $brighten (local $at i32)
    (loop $next
      (i32.store8 (local.get $at) (call $gamma (i32.load8_u (local.get $at))))
      (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const 1000000)))))
  (func $blur (local $at i32)
    (loop $next
      (i32.store8 (local.get $at) (i32.shr_u (i32.add (i32.add (i32.load8_u (local.get $at))
        (i32.load8_u offset=1 (local.get $at))) (i32.add (i32.load8_u offset=1000 (local.get $at))
        (i32.load8_u offset=1001 (local.get $at)))) (i32.const 2)))
      (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const 1000000)))))
  (func $render (param $frames i32)
    (loop $frame
      (call $brighten) (call $blur) (call $blur)
      (br_if $frame (local.tee $frames (i32.sub (local.get $frames) (i32.const 1))))))
  (func (export "main") (call $render (i32.const 20))))
`;

/** A picture: the command line that writes the page, around the path of the page, and the preparation of the page. */
interface Picture {
  readonly name: string;
  /** The words before the path of the page. */
  readonly command: readonly string[];
  /** The words after the path of the page: the program and its arguments. */
  readonly program: readonly string[];
  readonly height: number;
  readonly prepare: (page: Page) => Promise<void>;
}

const PICTURES: readonly Picture[] = [
  {
    name: "explore",
    command: ["explore", join(ROOT, "examples/fib.wat"), "-o"],
    program: [],
    height: 400,
    prepare: async (page) => {
      await page.keyboard.press("2");
      for (let line = 0; line < 6; line++) await page.keyboard.press("ArrowDown");
    },
  },
  {
    name: "profile",
    command: ["profile", "--invoke", "main", "-o"],
    program: ["filters.wat"],
    height: 400,
    prepare: async (page) => {
      await page.locator(".frame").first().waitFor();
    },
  },
];

/** The program of the recording: it reads random bytes, prints a line and traps. */
const ROLL = `(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "rolling\\n")
  (func (export "_start")
    (drop (call $random (i32.const 8) (i32.const 4)))
    (i32.store (i32.const 0) (i32.const 16))
    (i32.store (i32.const 4) (i32.const 8))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 12)))
    (drop (i32.div_u (i32.const 1) (i32.and (i32.load (i32.const 8)) (i32.const 0))))))
`;

/** A picture of a terminal: commands of waft, each with its input. */
interface TerminalPicture {
  readonly name: string;
  readonly commands: readonly { readonly args: readonly string[]; readonly input?: string }[];
}

const TERMINAL_PICTURES: readonly TerminalPicture[] = [
  { name: "inspect", commands: [{ args: ["inspect", "filters.wat"] }] },
  {
    name: "debug",
    commands: [{
      args: ["debug", "fib.wat", "3"],
      input: "break fib if $n == 2\nrun\nbacktrace\nlocals\nprint $n * 21\nstep\nquit\n",
    }],
  },
  {
    name: "record",
    commands: [{ args: ["run", "--record", "log", "roll.wat"] }, { args: ["replay", "log"] }, {
      args: ["inspect", "log"],
    }],
  },
];

/** Runs waft in `folder`; returns its output, errors last. */
function outputOf(args: readonly string[], input = ""): string {
  const run = ["run", "-A", join(ROOT, "cli.ts"), ...args];
  const { stdout, stderr } = spawnSync(process.execPath, run, { cwd: folder, input, encoding: "utf8" });
  return stdout + stderr;
}

function writeTerminalPicture({ name, commands }: TerminalPicture): void {
  const lines = commands.flatMap(({ args, input }) => [
    `$ waft ${args.join(" ")}`,
    ...outputOf(args, input).trimEnd().split("\n"),
  ]);
  writeFileSync(join(target, `${name}.svg`), terminalPicture(lines, ["$ ", "(waft) "]));
}

readTaskLine({
  name: "task pictures",
  about: "Regenerates the pictures of the documentation, with Chromium.",
  options: {},
});
assert.ok(CHROMIUM !== undefined, "there is no Chromium: install it, or set CHROMIUM");
const folder = mkdtempSync(join(tmpdir(), "pictures-"));
writeFileSync(join(folder, "filters.wat"), FILTERS);
const target = join(ROOT, "registry/site/static");
copyFileSync(join(ROOT, "examples/fib.wat"), join(folder, "fib.wat"));
writeFileSync(join(folder, "roll.wat"), ROLL);
for (const picture of TERMINAL_PICTURES) writeTerminalPicture(picture);
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
try {
  for (const { name, command, program, height, prepare } of PICTURES) {
    const file = join(folder, `${name}.html`);
    const run = ["run", "-A", join(ROOT, "cli.ts"), ...command, file, ...program];
    const made = spawnSync(process.execPath, run, { cwd: folder });
    assert.equal(made.status, 0, String(made.stderr));
    const page = await browser.newPage({ viewport: { width: 760, height }, colorScheme: "light" });
    await page.goto(pathToFileURL(file).href);
    await prepare(page);
    writeFileSync(join(target, `${name}.png`), await page.screenshot());
    await page.close();
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
