/**
 * Real programs through the command: the Lisp, the compressor, the file tool and the word counter of examples/wasi,
 * with directories, environment, arguments and standard input, as a user runs them.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Module, NewEngine } from "../../engine/api/engine.ts";
import { Wasi, WasiExit } from "../../engine/wasi/mod.ts";
import { CHILD_TIMEOUT, hostCommand } from "../support/host_arguments.ts";
import { closeDescriptor, openFile } from "./system_call.ts";
import { fileURLToPath } from "node:url";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));
const EXAMPLES = new URL("../../examples/wasi/", import.meta.url);

interface Outcome {
  status: number | null;
  out: string;
  err: string;
}

interface Surroundings {
  /** Host path of the guest's /box. */
  box?: string;
  env?: [string, string][];
  input?: string | Uint8Array;
}

function command({ box, env = [] }: Surroundings, program: string, args: string[]): [string, string[]] {
  const flags = [
    ...(box === undefined ? [] : ["--dir", `${box}::/box`]),
    ...env.flatMap((pair) => ["--env", pair.join("=")]),
  ];
  const [file, first] = hostCommand(CLI);
  return [file, [...first, "run", ...flags, fileURLToPath(new URL(`${program}.wasm`, EXAMPLES)), ...args]];
}

/** Runs an example with `waft run` in a separate process. */
function waftRun(program: string, args: string[] = [], surroundings: Surroundings = {}): Outcome {
  const { input = "" } = surroundings;
  const { status, stdout, stderr } = spawnSync(...command(surroundings, program, args), {
    input,
    timeout: CHILD_TIMEOUT,
  });
  return { status, out: stdout.toString(), err: stderr.toString() };
}

const modules = new Map<string, Module>();

/** Runs an example in this process, compiled once, with files as standard streams. */
function run(program: string, args: string[] = [], { box, env = [], input = "" }: Surroundings = {}): Outcome {
  let module = modules.get(program);
  if (module === undefined) {
    module = NewEngine().compile(readFileSync(new URL(`${program}.wasm`, EXAMPLES)));
    modules.set(program, module);
  }
  const folder = mkdtempSync(join(tmpdir(), "waft-streams-"));
  const [inPath, outPath, errPath] = ["in", "out", "err"].map((name) => join(folder, name));
  writeFileSync(inPath!, input);
  const stdio: [number, number, number] = [
    openFile(inPath!, false),
    openFile(outPath!, true),
    openFile(errPath!, true),
  ];
  const preopens = box === undefined ? [] : [{ host: box, guest: "/box" }];
  const wasi = new Wasi({ args: [program, ...args], env, preopens, stdio });
  let status = 0;
  try {
    const instance = module.instantiate({}, { wasi_snapshot_preview1: wasi.imports });
    wasi.attach(instance);
    try {
      instance.call({}, "_start");
    } catch (error) {
      if (!(error instanceof WasiExit)) throw error;
      status = error.status;
    }
    instance.close();
    return { status, out: readFileSync(outPath!, "utf8"), err: readFileSync(errPath!, "utf8") };
  } finally {
    wasi.close();
    for (const fd of stdio) closeDescriptor(fd);
    rmSync(folder, { recursive: true });
  }
}

function succeeds(outcome: Outcome, out: string): void {
  assert.deepEqual({ ...outcome, err: "" }, { status: 0, out, err: "" }, outcome.err);
}

function withBox(body: (box: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "waft-programs-"));
  try {
    mkdirSync(join(folder, "box"));
    body(join(folder, "box"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

Deno.test("the Lisp reads forms from standard input", () => {
  const input = `
    (define (fact n) (if (< n 2) 1 (* n (fact (- n 1)))))   ; recursion
    (fact 20)
    (define (loop n sum) (if (= n 0) sum (loop (- n 1) (+ sum n))))
    (loop 20000 0)                                           ; tail calls use no stack
    (define (map f list) (if (null? list) list (cons (f (first list)) (map f (rest list)))))
    (map (lambda (x) (* x x)) '(1 2 3 -4))
    (let ((a 1) (b "two")) (list a b 'c (cons 1 2)))
    (cond ((< 2 1) 'no) (else (and 1 (or () 5))))
    (getenv "GREETING")`;
  succeeds(
    waftRun("lisp", [], { input, env: [["GREETING", "hällo"]] }),
    `fact\n2432902008176640000\nloop\n200010000\nmap\n(1 4 9 16)\n(1 "two" c (1 . 2))\n5\n"hällo"\n`,
  );
});

Deno.test("the Lisp runs files and reports errors", () => {
  withBox((box) => {
    writeFileSync(
      join(box, "queens.lisp"),
      `
      (define (safe? q rows d) (or (null? rows)
        (and (< 0 (* (- q (first rows)) (- q (first rows))))
          (< 0 (* (- (- q (first rows)) d) (- (- q (first rows)) d)))
          (< 0 (* (+ (- q (first rows)) d) (+ (- q (first rows)) d)))
          (safe? q (rest rows) (+ d 1)))))
      (define (place k rows n q) (cond ((= k 0) 1) ((= q n) 0)
        (else (+ (if (safe? q rows 1) (place (- k 1) (cons q rows) n 0) 0) (place k rows n (+ q 1))))))
      (display "queens: " (place 6 () 6 0))
      (exit 3)`,
    );
    const outcome = run("lisp", ["/box/queens.lisp"], { box });
    assert.deepEqual([outcome.status, outcome.out], [3, "queens: 4\n"]);
    assert.deepEqual(run("lisp", [], { input: "(first 5)" }), { status: 1, out: "", err: "lisp: a pair is wanted\n" });
    const missing = run("lisp", ["/box/none.lisp"], { box });
    assert.deepEqual([missing.status, missing.err], [1, "lisp: cannot open: /box/none.lisp\n"]);
    assert.equal(run("lisp", ["/etc/passwd"]).status, 1);
  });
});

Deno.test("the compressor restores its input, by files and by pipes", () => {
  withBox((box) => {
    const original = readFileSync(new URL("files.c", EXAMPLES));
    writeFileSync(join(box, "original"), original);
    const packed = run("pack", ["compress", "/box/original", "/box/packed"], { box });
    assert.deepEqual([packed.status, packed.out], [0, ""]);
    const small = readFileSync(join(box, "packed"));
    assert.ok(small.length < original.length / 2, `${small.length} of ${original.length}`);
    assert.equal(packed.err, `${original.length} -> ${small.length} bytes\n`);
    assert.equal(run("pack", ["decompress", "/box/packed", "/box/again"], { box }).status, 0);
    assert.ok(original.equals(readFileSync(join(box, "again"))));
    succeeds(run("pack", ["decompress"], { input: small }), original.toString());
    small[small.length >> 1] ^= 16;
    const damaged = run("pack", ["decompress"], { input: small });
    assert.equal(damaged.status, 1);
    assert.match(damaged.err, /^pack: -: damaged/);
    assert.match(run("pack", ["decompress"], { input: "plain text" }).err, /not a packed file/);
    assert.equal(run("pack").status, 2);
  });
});

Deno.test("the file tool makes, shows, moves and removes", () => {
  withBox((box) => {
    const files = (...args: string[]) => run("files", args, { box });
    succeeds(files("mkdir", "/box/a", "/box/a/b"), "");
    succeeds(files("append", "/box/a/one", "first line"), "");
    succeeds(files("append", "/box/a/one", "second line"), "");
    succeeds(files("cp", "/box/a/one", "/box/a/b/two"), "");
    // A guest makes no links on Windows.
    const link = LACKS_POSIX_FILES ? [] : ["/box/a/b/link"];
    for (const path of link) succeeds(files("symlink", "../one", path), "");
    succeeds(files("ln", "/box/a/one", "/box/hard"), "");
    const shown = link.length > 0 ? "      link@\n" : "";
    succeeds(files("tree", "/box"), `box/\n  a/\n    b/\n${shown}      two\n    one\n  hard\n`);
    succeeds(files("find", "/box", "o"), "/box\n/box/a/b/two\n/box/a/one\n");
    for (const path of link) {
      succeeds(files("cat", path), "first line\nsecond line\n");
      succeeds(files("readlink", path), "../one\n");
      succeeds(files("stat", path), `${path}: l size 6 links 1\n`);
    }
    succeeds(files("stat", "/box/hard", "/box/a"), "/box/hard: f size 23 links 2\n/box/a: d size 0 links 0\n");
    succeeds(files("patch", "/box/a/b/two", "6", "LINE"), "LINE at 6 of 10\n");
    assert.equal(readFileSync(join(box, "a/b/two"), "utf8"), "first LINE");
    succeeds(files("touch", "/box/hard", "86400"), "86400\n");
    succeeds(files("mv", "/box/a/b", "/box/c"), "");
    succeeds(files("rm", ...link.map(() => "/box/c/link"), "/box/c/two", "/box/hard"), "");
    succeeds(files("rmdir", "/box/c"), "");
    succeeds(files("tree", "/box"), "box/\n  a/\n    one\n");
    assert.deepEqual(files("rmdir", "/box/a"), { status: 1, out: "", err: "files: /box/a: Directory not empty\n" });
    assert.deepEqual(files("cat", "/box/none"), {
      status: 1,
      out: "",
      err: "files: /box/none: No such file or directory\n",
    });
  });
});

Deno.test("the file tool cannot leave its directory", () => {
  withBox((box) => {
    writeFileSync(join(box, "..", "secret"), "secret");
    symlinkSync("../secret", join(box, "out"));
    symlinkSync(join(box, "..", "secret"), join(box, "absolute"));
    for (const path of ["/box/../secret", "/box/out", "/box/absolute", "/etc/passwd", join(box, "..", "secret")]) {
      const outcome = run("files", ["cat", path], { box });
      assert.deepEqual([outcome.status, outcome.out], [1, ""], path);
    }
    assert.equal(run("files", ["mv", "/box/out", "/box/../moved"], { box }).status, 1);
    assert.equal(existsSync(join(box, "..", "moved")), false);
    assert.equal(run("files", ["tree", "/box"]).status, 1, "no directory is given without --dir");
  });
});

Deno.test("everything after the file is the guest's; the environment is what --env says", () => {
  succeeds(waftRun("files", ["args", "-5", "--invoke", "", "--", "ü"]), "[-5]\n[--invoke]\n[]\n[--]\n[ü]\n");
  succeeds(waftRun("files", ["env"], { env: [["A", "1"], ["B", ""]] }), "A=1\nB=\n");
  succeeds(waftRun("files", ["env"]), "");
});

Deno.test("exit statuses: the program's own, and 134 for a trap", () => {
  for (const status of [0, 42, 255]) assert.equal(waftRun("files", ["exit", String(status)]).status, status);
  const aborted = waftRun("files", ["abort"]);
  assert.equal(aborted.status, 134);
  assert.match(aborted.err, /files\.wasm: trap: unreachable\n/);
  assert.doesNotMatch(aborted.err, /\.ts:/);
});

Deno.test("sleeping and waiting for input", async () => {
  const started = performance.now();
  succeeds(waftRun("files", ["sleep", "50"]), "");
  assert.ok(performance.now() - started >= 50);
  const child = spawn(...command({}, "files", ["cat", "-"]));
  let out = "";
  child.stdout.on("data", (part) => out += part);
  const finished = new Promise((resolve) => child.on("close", resolve));
  for (const line of ["one\n", "two\n"]) {
    child.stdin.write(line);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  child.stdin.end();
  assert.equal(await finished, 0);
  assert.equal(out, "one\ntwo\n");
});

Deno.test("the word counter, compiled by AssemblyScript", () => {
  const input = "the quick fox and the lazy dog and the end\n".repeat(300);
  succeeds(
    run("words", [], { input }),
    "300 lines, 3000 words, 12900 bytes\n900 the\n600 and\n300 dog\n300 end\n300 fox\n",
  );
});
