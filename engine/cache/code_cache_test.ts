/**
 * The cache of compiled modules: hits, damaged artifacts, unsafe directories and files, the size limit, concurrent and
 * killed processes.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { NewEngine } from "../mod.ts";
import { CodeCache } from "./code_cache.ts";

/** (func (export "f") (result i32) (i32.const `value`)) with a memory, in binary form; `value` below 64. */
function moduleOf(value: number): Uint8Array {
  // deno-fmt-ignore
  return Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 5, 1, 0x60, 0, 1, 0x7f, 3, 2, 1, 0, 5, 3, 1, 0, 1,
    7, 5, 1, 1, 0x66, 0, 0, 10, 6, 1, 4, 0, 0x41, value, 0x0b);
}

function withFolder(test: (directory: string) => void | Promise<void>): () => Promise<void> {
  return async () => {
    const root = mkdtempSync(join(tmpdir(), "waft-cache-"));
    try {
      await test(join(root, "compiled"));
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  };
}

function run(directory: string, value = 7, maxBytes?: number): number {
  const cache = { directory, ...(maxBytes === undefined ? {} : { maxBytes }) };
  const engine = NewEngine({ tier: "optimizing", cache });
  return engine.compile(moduleOf(value)).instantiate().call({}, "f") as number;
}

Deno.test(
  "a module is compiled once, then loaded",
  withFolder((directory) => {
    assert.equal(run(directory), 7);
    const [file, ...more] = readdirSync(directory);
    assert.equal(more.length, 0);
    assert.equal(lstatSync(directory).mode & 0o777, 0o700);
    assert.equal(lstatSync(join(directory, file!)).mode & 0o777, 0o600);
    const { ino } = statSync(join(directory, file!));
    assert.equal(run(directory), 7);
    assert.equal(statSync(join(directory, file!)).ino, ino, "not written again");
    assert.equal(
      NewEngine({ tier: "optimizing", fuel: true, cache: { directory } }).compile(moduleOf(7)).instantiate().call(
        {},
        "f",
      ),
      7,
    );
    assert.equal(run(directory, 8), 8);
    assert.equal(new CodeCache({ directory }).entries().length, 3, "other options and other modules have their own");
    assert.deepEqual(new CodeCache({ directory }).clear(), { removed: 3, remaining: 0 });
    assert.deepEqual(readdirSync(directory), []);
  }),
);

Deno.test(
  "a cache hit runs the stored code",
  withFolder((directory) => {
    run(directory, 7);
    run(directory, 8);
    const cache = new CodeCache({ directory });
    assert.equal(cache.entries().length, 2);
    const files = readdirSync(directory).map((name) => join(directory, name));
    const [a, b] = [readFileSync(files[0]), readFileSync(files[1])];
    const put = (first: Uint8Array, second: Uint8Array): void => {
      writeFileSync(files[0], first);
      writeFileSync(files[1], second);
    };
    // Each file gets the other's code and keeps its key: proof that a hit is loaded, not compiled.
    const keyBytes = 4 + 64;
    const joined = (code: Uint8Array, key: Uint8Array): Uint8Array =>
      Uint8Array.from([...code.subarray(0, -keyBytes), ...key.subarray(-keyBytes)]);
    put(joined(b, a), joined(a, b));
    assert.deepEqual([run(directory, 7), run(directory, 8)], [8, 7]);
    // Exchanged files are ignored, because each contains its key.
    put(b, a);
    assert.deepEqual([run(directory, 7), run(directory, 8)], [7, 8]);
    assert.deepEqual(files.map((path) => readFileSync(path)), [a, b], "and replaced");
  }),
);

Deno.test(
  "a damaged artifact is compiled again",
  withFolder((directory) => {
    run(directory);
    const file = join(directory, readdirSync(directory)[0]);
    const good = readFileSync(file);
    for (
      const damage of [
        new Uint8Array(0),
        good.subarray(0, 100),
        good.subarray(0, good.length - 1),
        good.map((b, k) => k === 700 ? b ^ 4 : b),
      ]
    ) {
      writeFileSync(file, damage);
      assert.equal(run(directory), 7);
      assert.deepEqual(readFileSync(file), good, "and replaced");
    }
  }),
);

Deno.test(
  "directories and files that other users can change are ignored",
  withFolder((directory) => {
    run(directory);
    const file = join(directory, readdirSync(directory)[0]);
    const key = readdirSync(directory)[0].split(".")[0];
    const cache = new CodeCache({ directory });
    assert(cache.read(key) !== undefined);
    chmodSync(file, 0o666);
    assert.equal(cache.read(key), undefined, "a file for everyone");
    chmodSync(file, 0o600);
    chmodSync(directory, 0o777);
    assert.equal(cache.read(key), undefined, "a folder for everyone");
    assert.equal(cache.write(key, new Uint8Array(16)), false);
    assert.equal(run(directory), 7);
    chmodSync(directory, 0o700);
    assert(cache.read(key) !== undefined);
    const link = `${directory}-link`;
    symlinkSync(directory, link);
    assert.equal(new CodeCache({ directory: link }).read(key), undefined, "a link to the folder");
    const other = "0".repeat(64);
    symlinkSync(file, join(directory, `${other}.waftbin`));
    assert.equal(cache.read(other), undefined, "a link to a file");
    mkdirSync(join(directory, `${"1".repeat(64)}.waftbin`));
    assert.equal(cache.read("1".repeat(64)), undefined, "a folder");
  }),
);

Deno.test(
  "a cache in a directory whose owner could exchange it is ignored",
  withFolder((directory) => {
    run(directory);
    const key = readdirSync(directory)[0].split(".")[0];
    const above = dirname(directory);
    const planted = join(above, "planted");
    // Another directory of the user, with contents that came from elsewhere, such as a clone.
    cpSync(directory, planted, { recursive: true });
    chmodSync(above, 0o777);
    renameSync(directory, `${directory}-old`);
    renameSync(planted, directory);
    const cache = new CodeCache({ directory });
    assert.equal(cache.read(key), undefined);
    assert.deepEqual(cache.entries(), []);
    assert.equal(cache.write(key, new Uint8Array(16)), false);
    assert.equal(cache.mark("3".repeat(64)), false);
    assert.equal(run(directory), 7);
    for (const mode of [0o1777, 0o755]) {
      chmodSync(above, mode);
      assert.notEqual(cache.read(key), undefined, mode.toString(8));
    }
  }),
);

Deno.test("a cache that cannot be written is ignored", () => {
  for (const directory of ["/dev/null/x", "/proc/waft"]) assert.equal(run(directory), 7);
  assert.throws(() => NewEngine({ cache: { directory: "" } }), TypeError);
  assert.throws(() => NewEngine({ cache: { directory: "x", maxBytes: -1 } }), RangeError);
});

Deno.test(
  "the least recently used artifacts are evicted",
  withFolder((directory) => {
    run(directory, 1);
    const { bytes } = new CodeCache({ directory }).entries()[0];
    const bound = bytes * 4 + 100;
    const age = (days: number) => {
      const seconds = Date.now() / 1000 - days * 86400;
      for (const { name, usedAt } of new CodeCache({ directory }).entries()) {
        if (Date.now() - usedAt < 3600_000) utimesSync(join(directory, `${name}.waftbin`), seconds, seconds);
      }
    };
    age(4);
    for (const [value, days] of [[2, 3], [3, 2], [4, 1]] as const) {
      run(directory, value, bound);
      age(days);
    }
    run(directory, 1, bound); // used again: now the newest
    run(directory, 5, bound);
    const cache = new CodeCache({ directory });
    assert(cache.entries().reduce((sum, entry) => sum + entry.bytes, 0) <= bound);
    const names = cache.entries().map(({ name }) => name);
    run(directory, 1);
    run(directory, 5);
    assert.deepEqual(cache.entries().map(({ name }) => name).sort(), names.sort(), "1 and 5 are still there");
    assert.equal(new CodeCache({ directory, maxBytes: 10 }).write("2".repeat(64), new Uint8Array(11)), false);
  }),
);

Deno.test(
  "abandoned temporary files are removed, foreign files are kept",
  withFolder((directory) => {
    run(directory, 1);
    const left = join(directory, `${"a".repeat(64)}.123-xyz.tmp`);
    const foreign = join(directory, "notes.txt");
    writeFileSync(left, "half");
    writeFileSync(foreign, "mine");
    run(directory, 2);
    assert(readdirSync(directory).includes("notes.txt") && lstatSync(left).isFile(), "it may still be written");
    utimesSync(left, 1, 1);
    run(directory, 3);
    assert.throws(() => lstatSync(left));
    new CodeCache({ directory }).clear();
    assert.deepEqual(readdirSync(directory), ["notes.txt"]);
  }),
);

const WRITER = `
import { CodeCache } from ${JSON.stringify(new URL("./code_cache.ts", import.meta.url).href)};
const cache = new CodeCache({ directory: Deno.args[0] });
const bytes = new Uint8Array(1 << 20);
for (let k = 0;; k++) {
  bytes.fill(k);
  cache.write("c".repeat(64), bytes);
  const seen = cache.read("c".repeat(64));
  if (seen === undefined || seen.length !== bytes.length || seen[0] !== seen[bytes.length - 1]) { console.log("torn"); Deno.exit(1); }
  if (k === 3) console.log("going");
}`;

Deno.test(
  "concurrent and killed writers leave complete artifacts",
  withFolder(async (directory) => {
    const script = `${directory}-writer.ts`;
    writeFileSync(script, WRITER);
    const cache = new CodeCache({ directory });
    const output: string[] = [];
    const children = [0, 1].map(() =>
      spawn(process.execPath, ["run", "-A", "--no-check", "--no-config", script, directory], {
        stdio: ["ignore", "pipe", "ignore"],
      })
    );
    const ends = children.map((child) => new Promise((resolve) => child.on("close", resolve)));
    await Promise.all(children.map((child) =>
      new Promise<void>((resolve) => {
        child.stdout.on("data", (text) => {
          output.push(String(text));
          resolve();
        });
        child.on("close", () => resolve());
      })
    ));
    for (const child of children) child.kill("SIGKILL");
    await Promise.all(ends);
    assert(!output.join("").includes("torn"));
    const seen = cache.read("c".repeat(64))!;
    assert.equal(seen.length, 1 << 20);
    assert(seen.every((byte) => byte === seen[0]));
  }),
);

/** Compiles module 7 with the default options; reports whether it starts with baseline code. */
const QUICK_START = `
const [engine, directory, bytes] = Deno.args;
const { NewEngine } = await import(engine);
const module = NewEngine({ cache: { directory } }).compile(Uint8Array.from(JSON.parse(bytes)));
console.log(module.instantiate().call({}, "f"), module.isTieringUp);`;

Deno.test(
  "a module that runs briefly starts with baseline code once; the next process stores optimized code",
  { ignore: process.arch !== "x64" || process.versions["deno"] === undefined },
  withFolder((directory) => {
    const program = `${directory}-program.ts`;
    writeFileSync(program, QUICK_START);
    const args = [new URL("../mod.ts", import.meta.url).href, directory, JSON.stringify([...moduleOf(7)])];
    const runOnce = () =>
      execFileSync(process.execPath, ["run", "-A", "--no-check", "--quiet", program, ...args], { encoding: "utf8" });
    const cache = new CodeCache({ directory });
    assert.equal(runOnce(), "7 true\n");
    assert.deepEqual([cache.entries().length, readdirSync(directory).length], [0, 1], "a mark");
    assert.equal(runOnce(), "7 false\n");
    assert.equal(cache.entries().length, 1);
    assert.equal(runOnce(), "7 false\n");
    assert.equal(cache.entries().length, 1);
    cache.clear();
    assert.deepEqual(readdirSync(directory), []);
  }),
);

Deno.test(
  "marks: private, once per key, removed when they are old",
  withFolder((directory) => {
    const cache = new CodeCache({ directory });
    const [one, two] = ["1".repeat(64), "2".repeat(64)];
    assert.deepEqual([cache.mark(one), cache.mark(one), cache.mark(two)], [false, true, false]);
    const path = join(directory, `${one}.mark`);
    assert.equal(lstatSync(path).mode & 0o777, 0o600);
    chmodSync(path, 0o622);
    assert.equal(cache.mark(one), false, "writable by others");
    const old = new Date(Date.now() - 40 * 24 * 3600_000);
    utimesSync(path, old, old);
    cache.write("3".repeat(64), new Uint8Array(5));
    assert.deepEqual(readdirSync(directory).sort(), [`${two}.mark`, `${"3".repeat(64)}.waftbin`]);
  }),
);

Deno.test(
  "a file that cannot be removed stops neither clearing nor eviction",
  withFolder((directory) => {
    const cache = new CodeCache({ directory, maxBytes: 1000 });
    const [one, two, stuck] = ["1", "2", "0"].map((digit) => digit.repeat(64));
    cache.write(one, new Uint8Array(500));
    // rmSync refuses directories for every user, the superuser included.
    const obstacle = join(directory, `${stuck}.waftbin`);
    mkdirSync(obstacle);
    utimesSync(obstacle, 1, 1);
    assert(cache.write(two, new Uint8Array(500)));
    assert.deepEqual([cache.read(one), cache.read(two)?.length], [undefined, 500]);
    assert.deepEqual(cache.clear(), { removed: 1, remaining: 1 });
    assert.deepEqual(readdirSync(directory), [`${stuck}.waftbin`]);
  }),
);
