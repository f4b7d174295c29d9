/**
 * Artifacts in files: a mapped module behaves as a copied one; the file may be removed or replaced; damaged files and
 * paths that hold no artifact are refused.
 */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { currentHost } from "../host/current.ts";
import { MAPPED_FROM } from "./format.ts";
import { ArtifactError, type EngineOptions, type Module, NewEngine, TrapError } from "../mod.ts";

/** Jump tables make large code from short text. */
const TABLES = 5;
const TARGETS = Array.from({ length: 60_000 }, (_, k) => (k * 7) % 3).join(" ");
const TEXT = `(module (memory (export "memory") 1) (data (i32.const 8) "\\2a") (data $passive "xyz")
  (tag $tag (param i32))
  ${
  Array.from(
    { length: TABLES },
    (_, n) =>
      `(func (export "switch${n}") (param i32) (result i32)
    (block (block (block (br_table ${TARGETS} 0 (local.get 0))) (return (i32.const ${n}0))) (return (i32.const ${n}1)))
    (i32.const ${n}2))`,
  ).join("\n")
}
  (func $inner (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "load") (param i32) (result i32) (call $inner (local.get 0)))
  (func (export "catch") (param i32) (result i32)
    (block $h (result i32) (try_table (catch $tag $h) (throw $tag (local.get 0))) (unreachable)))
  (func (export "copy") (memory.init $passive (i32.const 32) (i32.const 0) (i32.const 3))))`;

function use(module: Module): unknown[] {
  const instance = module.instantiate();
  const seen: unknown[] = [];
  for (let n = 0; n < TABLES; n++) {
    for (const k of [0, 1, 2, 59_999, 60_000]) seen.push(instance.call({}, `switch${n}`, k));
  }
  seen.push(instance.call({}, "catch", 9), instance.call({}, "load", 8));
  instance.call({}, "copy");
  seen.push(instance.call({}, "load", 32));
  try {
    instance.call({}, "load", -1);
  } catch (error) {
    assert(error instanceof TrapError);
    seen.push(error.message, error.frames.map(({ funcName }) => funcName));
  }
  instance.close();
  return seen;
}

let known: { artifact: Uint8Array; seen: unknown[] } | undefined;

/** An artifact large enough to be mapped, and the observed results of its module; built once. */
function big(): { artifact: Uint8Array; seen: unknown[] } {
  if (known === undefined) {
    const module = NewEngine().compile(TEXT);
    assert(module.codeSize > MAPPED_FROM, "the code is big enough to be mapped");
    known = { artifact: module.serialize(), seen: use(module) };
  }
  return known;
}

/** Runs a test with a temporary directory. */
function withFolder(action: (directory: string) => void | Promise<void>): () => Promise<void> {
  return async () => {
    const directory = mkdtempSync(join(tmpdir(), "waft-artifact-"));
    try {
      await action(directory);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  };
}

/** The lines of the process's memory map that refer to files in `directory`. */
function mappings(directory: string): string[] {
  return readFileSync("/proc/self/maps", "utf8").split("\n").filter((line) => line.includes(directory));
}

Deno.test(
  "a mapped module behaves as the compiled one, also after its file is replaced or removed",
  withFolder((directory) => {
    const { artifact, seen } = big();
    const path = join(directory, "a #1.waftbin");
    writeFileSync(path, artifact);
    const first = NewEngine().loadFile(path);
    if (currentHost().os === "linux") {
      assert(mappings(directory).some((line) => line.includes("r-xp")), "the file's pages are executed");
    }
    assert.deepEqual(use(first), seen);
    const second = NewEngine().loadFile(pathToFileURL(path));
    writeFileSync(join(directory, "other"), "something else");
    renameSync(join(directory, "other"), path);
    assert.deepEqual(use(second), seen);
    rmSync(path);
    assert.deepEqual(use(first), seen);
    assert.deepEqual(first.serialize(), artifact);
    assert.deepEqual(use(NewEngine().load(artifact)), seen, "the copied module too");
  }),
);

Deno.test(
  "small modules and address-dependent code are loaded from files",
  withFolder((directory) => {
    const path = join(directory, "artifact");
    const small = NewEngine().compile(`(module (func (export "f") (result i32) (i32.const 7)))`).serialize();
    writeFileSync(path, small);
    symlinkSync(path, join(directory, "link"));
    assert.equal(NewEngine().loadFile(join(directory, "link")).instantiate().call({}, "f"), 7);
    const options: EngineOptions = { interruptible: true };
    const text = TEXT.replace(/\)$/, `(func (export "spin") (loop (br 0))))`);
    writeFileSync(path, NewEngine(options).compile(text).serialize());
    const module = NewEngine(options).loadFile(path);
    assert.deepEqual(use(module), big().seen);
    assert.throws(() => module.instantiate().call({ deadline: 20 }, "spin"), /interrupted/);
  }),
);

Deno.test(
  "a damaged file of any size is refused",
  withFolder((directory) => {
    const { artifact } = big();
    const path = join(directory, "artifact");
    const refused = (bytes: Uint8Array, pattern: RegExp) => {
      writeFileSync(path, bytes);
      assert.throws(() => NewEngine().loadFile(path), (error) => {
        assert(error instanceof ArtifactError);
        assert.match(error.message, pattern);
        return true;
      });
    };
    for (const at of [0, 9, 40, 3000, 100_000, artifact.length >> 1, artifact.length - 1]) {
      const copy = artifact.slice();
      copy[at] ^= 16;
      refused(copy, /damaged|not a waft artifact|has format/);
    }
    refused(artifact.subarray(0, artifact.length - 16), /truncated/);
    refused(artifact.subarray(0, MAPPED_FROM), /truncated/);
    refused(new Uint8Array(0), /not a waft artifact/);
    refused(new Uint8Array(MAPPED_FROM * 2), /not a waft artifact/);
  }),
);

Deno.test(
  "paths that hold no file fail as reading them does",
  withFolder((directory) => {
    const code = (name: string) => (error: unknown) => (error as { code?: string }).code === name;
    assert.throws(() => NewEngine().loadFile(join(directory, "none")), code("ENOENT"));
    mkdirSync(join(directory, "folder"));
    assert.throws(() => NewEngine().loadFile(join(directory, "folder")), code("EISDIR"));
    assert.throws(() => NewEngine().loadFile(`${directory}/a\0b`));
  }),
);

Deno.test(
  "a large cached module is mapped; a damaged one is compiled again",
  withFolder((directory) => {
    // An engine of its own for each compilation: one engine shares its code in memory.
    const compile = (bytes: Uint8Array) => NewEngine({ tier: "optimizing", cache: { directory } }).compile(bytes);
    const parsed = NewEngine().parse(TEXT);
    const binary = parsed.bytes;
    assert.deepEqual(use(compile(binary)), big().seen);
    const name = readdirSync(directory)[0];
    assert.deepEqual(use(compile(binary)), big().seen);
    if (currentHost().os === "linux") assert(mappings(join(directory, name)).length > 0);
    const path = join(directory, name);
    const damaged = readFileSync(path);
    damaged[damaged.length >> 1] ^= 1;
    rmSync(path); // the mapped module keeps its inode
    writeFileSync(path, damaged, { mode: 0o600 });
    assert.deepEqual(use(compile(binary)), big().seen);
    assert(existsSync(path) && !readFileSync(path).equals(damaged), "replaced");
  }),
);

Deno.test({
  name: "unreachable modules are unmapped",
  ignore: currentHost().os !== "linux" || currentHost().name === "bun",
  fn: withFolder(async (directory) => {
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc") as () => void;
    const path = join(directory, "artifact");
    writeFileSync(path, big().artifact);
    const load = () => use(NewEngine().loadFile(path));
    for (let k = 0; k < 4; k++) assert.deepEqual(load(), big().seen);
    for (let k = 0; k < 100 && mappings(directory).length > 0; k++) {
      gc();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.deepEqual(mappings(directory), []);
  }),
});
