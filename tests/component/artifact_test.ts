/** Artifacts of components: loaded without compilation, and refused when they are damaged or of other options. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { ArtifactError, type EngineOptions, NewEngine } from "@waft/engine";
import { compileBinary } from "../../component/component.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { compileComponent, loadComponent } from "../../component/mod.ts";
import { CHILD_TIMEOUT, hostCommand } from "../support/host_arguments.ts";

/** The baseline tier exists for x64 only. */
const HAS_BASELINE = process.arch === "x64";

/** A component with a nested one, whose function it calls, and a core module each. */
const NESTED = `(component
  (component $inner
    (core module $m (func (export "twice") (param i32) (result i32) (i32.mul (i32.const 2) (local.get 0))))
    (core instance $i (instantiate $m))
    (func (export "twice") (param "n" u32) (result u32) (canon lift (core func $i "twice"))))
  (instance $inner (instantiate $inner))
  (core func $twice (canon lower (func $inner "twice")))
  (core module $m
    (import "inner" "twice" (func $twice (param i32) (result i32)))
    (import "host" "add" (func $add (param i32) (result i32)))
    (func (export "run") (param i32) (result i32) (call $add (call $twice (local.get 0)))))
  (import "add" (func $add (param "n" u32) (result u32)))
  (core func $add (canon lower (func $add)))
  (core instance $i (instantiate $m
    (with "inner" (instance (export "twice" (func $twice))))
    (with "host" (instance (export "add" (func $add))))))
  (func (export "run") (param "n" u32) (result u32) (canon lift (core func $i "run"))))`;

type Exports = { run(n: number): number };
const imports = { add: (n: number) => n + 1 };

/** An engine that counts the modules that it compiles. */
function counting(options: EngineOptions = {}) {
  const origins: string[] = [];
  const engine = NewEngine({ ...options, explain: ({ origin }) => void origins.push(String(origin)) });
  return { engine, origins };
}

Deno.test("an artifact holds all core modules, and loading compiles none", () => {
  const component = compileComponent(NewEngine(), NESTED);
  const artifact = component.serialize();
  const { engine, origins } = counting();
  const loaded = loadComponent(engine, artifact);
  assert.deepEqual(origins, []);
  const { exports } = loaded.instantiate<Exports>({}, imports);
  assert.equal(exports.run(20), 41);
  for (let k = 0; k < 40; k++) assert.equal(exports.run(k), 2 * k + 1);
  assert.deepEqual(loadComponent(NewEngine(), loaded.serialize().buffer).serialize(), artifact);
  assert.throws(() => loaded.instantiate(), { name: "LinkError" });
});

Deno.test("an artifact that is damaged or cut off is refused", () => {
  const engine = NewEngine();
  const artifact = compileComponent(engine, NESTED).serialize();
  const refused = (bytes: Uint8Array, what: string) =>
    assert.throws(() => loadComponent(engine, bytes), (error: Error) => {
      assert.match(error.name, /^(?:ArtifactError|MalformedError|InvalidError)$/, what);
      return true;
    });
  for (let length = 0; length < artifact.length; length += length < 64 ? 1 : 97) {
    refused(artifact.slice(0, length), `${length} bytes`);
  }
  refused(Uint8Array.from([...artifact, 0]), "a byte too many");
  // Every bit of the header and of the component: its core modules would no longer be those of the machine code.
  const componentEnd = 36 + new DataView(artifact.buffer).getUint32(32, true) + 16;
  for (let bit = 0; bit < 8 * componentEnd; bit++) {
    const bytes = artifact.slice();
    bytes[bit >> 3] ^= 1 << (bit & 7);
    refused(bytes, `bit ${bit}`);
  }
  const shifted = new Uint8Array(artifact.length + 1).subarray(1);
  shifted.set(artifact);
  assert.equal(loadComponent(engine, shifted).instantiate<Exports>({}, imports).exports.run(1), 3);
});

Deno.test("an artifact of other options is refused", () => {
  const artifact = compileComponent(NewEngine(), NESTED).serialize();
  assert.throws(() => loadComponent(NewEngine({ fuel: true }), artifact), ArtifactError);
});

/** The files of a cache with their sizes, largest first. */
function filesIn(directory: string): { path: string; bytes: number }[] {
  return readdirSync(directory).map((name) => join(directory, name))
    .map((path) => ({ path, bytes: statSync(path).size })).sort((a, b) => b.bytes - a.bytes);
}

Deno.test("the cache holds the code of a whole component in one file, which replaces validation and compilation", () => {
  const directory = mkdtempSync(join(tmpdir(), "waft-cache-"));
  const origins = (options: EngineOptions = {}) => {
    const { engine, origins } = counting({ tier: "optimizing", cache: { directory }, ...options });
    const component = compileBinary(engine, componentToBinary(NESTED));
    const found = [...origins];
    assert.equal(component.instantiate<Exports>({}, imports).exports.run(20), 41);
    return found;
  };
  try {
    assert.deepEqual(origins(), ["compile", "compile"]);
    const [whole, ...modules] = filesIn(directory);
    assert.equal(modules.length, 2);
    for (const { path } of modules) rmSync(path);
    assert.deepEqual(origins(), ["cache", "cache"]);
    assert.deepEqual(filesIn(directory), [whole]);
    // Code of other options is not taken.
    assert.deepEqual(origins({ fuel: true }), ["compile", "compile"]);
    for (const { path } of filesIn(directory)) if (path !== whole.path) rmSync(path);
    // A damaged entry is removed, and the component is compiled and stored again.
    for (const at of [8, 200]) {
      const content = readFileSync(whole.path);
      content[at] ^= 1;
      writeFileSync(whole.path, content);
      assert.deepEqual(origins(), ["compile", "compile"], `byte ${at}`);
      const [again, ...modules] = filesIn(directory);
      assert.deepEqual(again, whole);
      for (const { path } of modules) rmSync(path);
    }
    assert.deepEqual(origins(), ["cache", "cache"]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

Deno.test("a component whose modules are still to be optimized is not in the cache", () => {
  const directory = mkdtempSync(join(tmpdir(), "waft-cache-"));
  try {
    const engine = NewEngine({ cache: { directory } });
    compileBinary(engine, componentToBinary(NESTED));
    assert.deepEqual(filesIn(directory).filter(({ bytes }) => bytes > 0), []);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

/** The compilations of a component in two processes that share a cache. */
function compilationsOfTwoRuns(count: number, bytes: number): string[] {
  const directory = mkdtempSync(join(tmpdir(), "waft-cache-"));
  try {
    const [command, first] = hostCommand(fileURLToPath(new URL("./second_run_program.ts", import.meta.url)));
    const args = [...first, directory, String(count), String(bytes)];
    return [1, 2].map(() => execFileSync(command, args, { encoding: "utf8", timeout: CHILD_TIMEOUT }).trim());
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

Deno.test({
  name: "the second run of a small component compiles optimized code, that of many modules does what the first did",
  ignore: !HAS_BASELINE,
  fn: () => {
    assert.deepEqual(compilationsOfTwoRuns(4, 100), ["4 baseline compile", "4 optimizing compile"]);
    assert.deepEqual(compilationsOfTwoRuns(40, 5000), ["40 baseline compile", "40 baseline compile"]);
  },
});
