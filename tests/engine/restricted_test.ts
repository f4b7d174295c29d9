/**
 * The engine in processes with few rights: without helper threads, without code made from strings, with the least
 * permissions of each host. Every one of them gives the same result, and the reports of the compilations name the
 * compiler and the thread. In: the host that runs the test. Out: child processes with a restriction each.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { hasNativeCompiler } from "../../engine/portable/late_native.ts";
import { CHILD_TIMEOUT, hostArguments } from "../support/host_arguments.ts";

const ENGINE = new URL("../../engine/mod.ts", import.meta.url).href;

/**
 * Calls a loop, and prints the result and the origin of the module's code so far. Without a thread, the calls go on
 * until this thread has optimized the code. With one they do not wait for it: tier_up_test.ts does.
 */
const program = (reportCount: number, options: string) => `
  const { NewEngine } = await import(${JSON.stringify(ENGINE)});
  const reports = [];
  const explain = ({ tier, origin, part }) => part === "module" && reports.push(tier + " " + origin);
  const module = NewEngine({ explain, ${options} }).compile(\`(module
    (func (export "sum") (param $n i32) (result i32) (local $sum i32)
      (loop $l
        (local.set $sum (i32.add (local.get $sum) (local.get $n)))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $sum)))\`);
  const instance = module.instantiate();
  const end = performance.now() + ${CHILD_TIMEOUT};
  let sum;
  for (let calls = 0; calls < 10 || (reports.length < ${reportCount} && performance.now() < end); calls++) {
    sum = instance.call({}, "sum", 10000);
  }
  console.log([sum, ...reports].join(", "));`;

/** On a busy machine the code of the thread may arrive before the calls end. */
const WITH_THREAD = /^50005000, baseline compile(, optimizing background)?$/;
const WITHOUT_THREAD = "50005000, baseline compile, optimizing compile";
/** Packages have the compiler as machine code, which needs no Worker. */
const WITHOUT_WORKER = hasNativeCompiler() ? "50005000, baseline compile, optimizing background" : WITHOUT_THREAD;

const NO_WORKER = `
  process.getBuiltinModule("node:worker_threads").Worker = class { constructor() { throw new Error("refused"); } };`;
const NO_STRINGS = `
  for (const make of [Function, eval]) {
    let isRefused = false;
    try { make("1"); } catch { isRefused = true; }
    if (!isRefused) throw new Error("this host still makes code from strings");
  }`;

interface Restriction {
  /** Arguments before the program's file, without those that give all permissions. */
  readonly flags?: readonly string[];
  /** Code before the program. */
  readonly prelude?: string;
  /** Further options of the engine, as source text. */
  readonly options?: string;
  readonly expected: string | RegExp;
}

const [major] = (process.versions["node"] ?? "0").split(".").map(Number);
const PERMISSION = major > 22 ? "--permission" : "--experimental-permission";
/** Node 26 loads libc by itself, earlier ones by an addon. */
const MAY_CALL = major > 25 ? "--allow-ffi" : "--allow-addons";
const NODE_STRINGS = "--disallow-code-generation-from-strings";

const RESTRICTIONS: Readonly<Record<"deno" | "node" | "bun", Readonly<Record<string, Restriction>>>> = {
  deno: {
    "permission to call libc and to read": { flags: ["--allow-ffi", "--allow-read"], expected: WITH_THREAD },
    "permission to call libc alone": { flags: ["--allow-ffi"], expected: WITHOUT_THREAD },
    "no permission": { flags: [], expected: /--allow-ffi/ },
    "no code from strings": {
      flags: ["-A", `--v8-flags=${NODE_STRINGS}`],
      prelude: NO_STRINGS,
      expected: WITH_THREAD,
    },
  },
  node: {
    "permission to call libc, to read, and for threads": {
      flags: [PERMISSION, MAY_CALL, "--allow-worker", "--allow-fs-read=*"],
      expected: WITH_THREAD,
    },
    "permission to call libc and to read": {
      flags: [PERMISSION, MAY_CALL, "--allow-fs-read=*"],
      expected: WITHOUT_WORKER,
    },
    "no permission to call libc": {
      flags: [PERMISSION, "--allow-fs-read=*"],
      expected: major > 25 ? /--allow-ffi/ : /--allow-addons/,
    },
    "no code from strings": { flags: [NODE_STRINGS], prelude: NO_STRINGS, expected: WITH_THREAD },
  },
  bun: {},
};

const host = "Deno" in globalThis ? "deno" : "Bun" in globalThis ? "bun" : "node";

/** Runs this host. Deno's child_process would give a Deno that it starts all permissions. */
function run(args: string[]): { succeeded: boolean; stdout: string; stderr: string } {
  const env = { ...process.env, NO_COLOR: "1" } as Record<string, string>;
  if (host === "deno") {
    const { success, stdout, stderr } = new Deno.Command(Deno.execPath(), { args, env }).outputSync();
    const decoder = new TextDecoder();
    return { succeeded: success, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
  }
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { env, encoding: "utf8" });
  return { succeeded: status === 0, stdout, stderr };
}

/** The output of the program under a restriction; that of errors if it fails. */
function outputUnder(restriction: Restriction): string {
  const { flags, prelude = "", options = "", expected } = restriction;
  const folder = mkdtempSync(join(tmpdir(), "waft-restricted-"));
  try {
    const file = join(folder, "program.mjs");
    writeFileSync(file, prelude + program(typeof expected === "string" ? 2 : 1, options));
    const usual = hostArguments(file);
    const args = flags === undefined
      ? usual
      : [...(host === "deno" ? ["run", "--no-prompt", "--quiet"] : []), ...flags, file];
    const { succeeded, stdout, stderr } = run(args);
    return succeeded ? stdout.trim() : stderr;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const ALL: Readonly<Record<string, Restriction>> = {
  "no restriction": { expected: WITH_THREAD },
  "no Worker": { prelude: NO_WORKER, expected: WITHOUT_WORKER },
  // Native threads leave deterministic code to a Worker.
  "no thread": { prelude: NO_WORKER, options: 'deterministic: true, tier: "auto"', expected: WITHOUT_THREAD },
  ...RESTRICTIONS[host],
};

for (const [name, restriction] of Object.entries(ALL)) {
  Deno.test({
    name: `the engine with ${name}`,
    ignore: process.arch !== "x64", // the emulator starts no children with flags
    fn: () => {
      const output = outputUnder(restriction);
      if (typeof restriction.expected === "string") assert.equal(output, restriction.expected);
      else assert.match(output, restriction.expected);
    },
  });
}
