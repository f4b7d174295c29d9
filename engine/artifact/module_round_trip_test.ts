/**
 * Artifacts: a loaded module behaves as the compiled one, and no damaged or incompatible artifact is loaded.
 */
import assert from "node:assert/strict";
import { cpuFeatures } from "../host/cpu.ts";
import { currentHost } from "../host/current.ts";
import { ArtifactError, type EngineOptions, type Machine, type Module, NewEngine, TrapError } from "../mod.ts";
import { readArtifact, writeArtifact } from "./format.ts";
import { ENGINE_VERSION } from "./engine_stamp.ts";
import denoJson from "../deno.json" with { type: "json" };

const TEXT = `(module $shop
  (type $f (func (param i32) (result i32)))
  (type $point (struct (field (mut i32)) (field (mut i64))))
  (import "host" "log" (func $log (param i32)))
  (import "host" "base" (global $base i32))
  (memory (export "memory") 1 4)
  (table (export "table") 4 funcref)
  (global $count (export "count") (mut i32) (i32.const 5))
  (tag $tag (param i32))
  (elem (i32.const 1) func $double $half)
  (elem $later func $half)
  (data (i32.const 16) "abcd")
  (data $passive "efgh")
  (func $double (type $f) (i32.mul (local.get 0) (i32.const 2)))
  (func $half (type $f) (i32.div_s (local.get 0) (global.get $base)))
  (func (export "indirect") (param i32 i32) (result i32)
    (call $log (local.get 1))
    (call_indirect (type $f) (local.get 1) (local.get 0)))
  (func (export "point") (param i32) (result i64)
    (local $p (ref $point))
    (local.set $p (struct.new $point (local.get 0) (i64.const 40)))
    (i64.add (i64.extend_i32_s (struct.get $point 0 (local.get $p))) (struct.get $point 1 (local.get $p))))
  (func (export "catch") (param i32) (result i32)
    (block $h (result i32) (try_table (catch $tag $h) (throw $tag (local.get 0))) (unreachable)))
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "copy") (memory.init $passive (i32.const 32) (i32.const 0) (i32.const 4)))
  (func $start (global.set $count (i32.add (global.get $count) (i32.const 1))))
  (func (export "sum") (param i32) (result i32) (local i32)
    (loop $l (local.set 1 (i32.add (local.get 1) (local.get 0)))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1))
  (start $start))`;

function use(module: Module): unknown[] {
  const seen: unknown[] = [];
  const log = (value: number) => seen.push(value);
  const instance = module.instantiate({}, { host: { log, base: 2 } });
  const call = (name: string, ...args: unknown[]) => {
    try {
      seen.push(instance.call({}, name, ...args));
    } catch (error) {
      assert(error instanceof TrapError);
      seen.push(error.message, error.frames);
    }
  };
  call("indirect", 1, 21);
  call("indirect", 2, 21);
  call("indirect", 3, 21);
  call("point", 2);
  call("catch", 9);
  call("load", 16);
  call("copy");
  call("load", 32);
  call("load", 65533);
  call("load", -1);
  call("sum", 10);
  seen.push((instance.exports.count as { value: unknown }).value);
  seen.push(module.imports, module.exports, module.functionType("indirect"));
  instance.close();
  return seen;
}

/** Line numbers are known of text that was compiled only. */
function withoutLines(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(
      value,
      (key, item) => key === "line" || key === "column" ? undefined : typeof item === "bigint" ? `${item}n` : item,
    ),
  );
}

const OPTIONS: EngineOptions[] = [{}, { bounds: "explicit" }, { interruptible: true }, {
  fuel: true,
  deterministic: true,
}];

for (const options of OPTIONS) {
  Deno.test(`a loaded module behaves as the compiled one: ${JSON.stringify(options)}`, () => {
    const engine = NewEngine(options);
    const module = engine.compile(TEXT);
    const artifact = module.serialize();
    const before = artifact.slice();
    const loaded = engine.load(artifact);
    assert.deepEqual(withoutLines(use(loaded)), withoutLines(use(module)));
    assert.deepEqual(loaded.statistics, module.statistics);
    assert.deepEqual(artifact, before, "loading leaves the bytes alone");
    assert.deepEqual(engine.load(artifact.buffer).serialize(), artifact, "a loaded module has the same artifact");
    assert.deepEqual(engine.compile(TEXT).serialize(), artifact, "so has the same module compiled again");
  });
}

Deno.test("an artifact is loaded from any place in a buffer", () => {
  const engine = NewEngine();
  const artifact = engine.compile(TEXT).serialize();
  for (const shift of [1, 2, 4, 8]) {
    const room = new Uint8Array(artifact.length + 16);
    room.set(artifact, shift);
    const seen = use(engine.load(room.subarray(shift, shift + artifact.length)));
    assert.equal(seen[1], 42);
  }
  const shared = new Uint8Array(new SharedArrayBuffer(artifact.length));
  shared.set(artifact);
  assert.equal(use(engine.load(shared))[1], 42);
});

Deno.test("deadlines stop loaded code that polls", () => {
  const engine = NewEngine({ interruptible: true });
  const artifact = engine.compile(`(module (func (export "f") (loop (br 0))))`).serialize();
  const instance = engine.load(artifact).instantiate();
  assert.throws(() => instance.call({ deadline: 20 }, "f"), /interrupted/);
});

Deno.test("snapshots fit the loaded and the compiled module", () => {
  const engine = NewEngine();
  const text = `(module (global $g (mut i32) (i32.const 1)) (func (export "next") (result i32)
    (global.set $g (i32.add (global.get $g) (i32.const 1))) (global.get $g)))`;
  const module = engine.compile(text);
  const loaded = engine.load(module.serialize());
  const first = loaded.instantiate();
  assert.equal(first.call({}, "next"), 2);
  assert.equal(module.restore(first.snapshot()).call({}, "next"), 3);
  const second = module.instantiate();
  second.call({}, "next");
  assert.equal(engine.load(loaded.serialize()).restore(second.snapshot()).call({}, "next"), 3);
});

Deno.test("inlined functions are in the frames of a loaded module's traps", () => {
  const engine = NewEngine();
  const module = engine.compile(`(module (func $inner (unreachable))
    (func $middle (param i32) (if (local.get 0) (then (call $inner)))) (func (export "outer") (param i32) (call $middle (local.get 0))))`);
  const names = (from: Module) => {
    try {
      from.instantiate().call({}, "outer", 1);
    } catch (error) {
      return (error as TrapError).frames.map(({ funcName }) => funcName);
    }
    return assert.fail("no trap");
  };
  assert.deepEqual(names(module), ["inner", "middle", "outer"]);
  assert.deepEqual(names(engine.load(module.serialize())), ["inner", "middle", "outer"]);
});

Deno.test("artifacts with other options, machines or versions are refused with the difference", () => {
  const artifact = NewEngine().compile(TEXT).serialize();
  const refused = (options: EngineOptions, expected: RegExp) =>
    assert.throws(() => NewEngine(options).load(artifact), (error) => {
      assert(error instanceof ArtifactError);
      assert.match(error.message, expected);
      return true;
    });
  refused({ interruptible: true }, /interruptible is off in the artifact/);
  refused({ fuel: true }, /fuel is off in the artifact/);
  refused({ features: { simd: false } }, /features\.simd is on in the artifact/);
  refused({ optimizations: { inline: false } }, /optimizations\.inline is on in the artifact/);
  refused({ bounds: "explicit" }, /guard pages/);
  const parts = readArtifact(artifact);
  const changed = (change: Record<string, unknown>) =>
    writeArtifact({ ...parts, description: { ...parts.description as object, ...change } });
  const engine = NewEngine();
  assert.throws(() => engine.load(changed({ engine: "9.9.9-0" })), /made by waft 9\.9\.9-0/);
  assert.throws(() => engine.load(changed({ machine: "linux/mips" })), /is for linux\/mips/);
  assert.throws(() => engine.load(changed({ cpu: ["avx1024"] })), /needs a processor with avx1024/);
  for (const description of [null, 1, "x", [], {}]) {
    assert.throws(() => engine.load(writeArtifact({ ...parts, description })), ArtifactError);
  }
  assert.throws(() => engine.load(writeArtifact({ ...parts, metadata: Uint8Array.of(0, 1) })), /metadata is invalid/);
});

Deno.test("every truncation and every changed byte of an artifact is refused", () => {
  const engine = NewEngine();
  const artifact = engine.compile(
    `(module (memory 1) (func (export "f") (param i32) (result i32) (i32.load (local.get 0))))`,
  )
    .serialize();
  const refused = (bytes: Uint8Array, what: string) => assert.throws(() => readArtifact(bytes), ArtifactError, what);
  // The header and the directory exhaustively; the rest in steps that keep the test short.
  for (let length = 0; length < artifact.length; length += length < 512 ? 1 : 61) {
    refused(artifact.subarray(0, length), `cut at ${length}`);
    assert.throws(() => engine.load(artifact.slice(0, length)), ArtifactError);
  }
  refused(Uint8Array.of(...artifact.subarray(0, 600), 0), "another end");
  const longer = new Uint8Array(artifact.length + 16);
  longer.set(artifact);
  refused(longer, "longer");
  let seed = 1;
  for (let at = 0; at < artifact.length; at += at < 512 ? 1 : 7) {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    const bit = 1 << ((seed >>> 16) & 7);
    artifact[at] ^= bit;
    refused(artifact, `byte ${at}, bit ${bit}`);
    artifact[at] ^= bit;
  }
  for (let k = 0; k < 500; k++) {
    const copy = artifact.slice();
    for (let n = 0; n < 1 + k % 40; n++) {
      seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
      copy[48 + (seed >>> 8) % (copy.length - 48)] = seed >>> 3;
    }
    if (copy.every((byte, at) => byte === artifact[at])) continue;
    refused(copy, `random damage ${k}`);
  }
  assert.equal(engine.load(artifact).instantiate().call({}, "f", 0), 0);
});

Deno.test("bytes that are not an artifact are refused", () => {
  const engine = NewEngine();
  for (const bytes of [new Uint8Array(0), Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0), new Uint8Array(4096)]) {
    assert.throws(() => engine.load(bytes), /not a waft artifact/);
  }
});

Deno.test("the engine's version is that of its package", () => {
  assert.equal(ENGINE_VERSION, denoJson.version);
});

const HOST = currentHost();
const OS = HOST.os as Machine["os"];
const THIS_MACHINE: Machine = { os: OS, arch: HOST.arch, cpu: [...cpuFeatures(HOST)] };

for (const options of [...OPTIONS, { bounds: "guard" } as const]) {
  Deno.test(`cross-compilation yields the target machine's artifact: ${JSON.stringify(options)}`, async () => {
    const engine = NewEngine(options);
    const artifact = await engine.compileFor(THIS_MACHINE, TEXT);
    assert.deepEqual(artifact, engine.compile(TEXT).serialize());
    const plain = engine.load(await engine.compileFor({ os: OS, arch: HOST.arch }, TEXT));
    assert.deepEqual(withoutLines(use(plain)), withoutLines(use(engine.compile(TEXT))));
  });
}

Deno.test("an artifact for another machine is refused with the name of that machine", async () => {
  const engine = NewEngine();
  const arch = HOST.arch === "x64" ? "arm64" : "x64";
  const artifact = await engine.compileFor({ os: "linux", arch }, TEXT);
  assert.throws(() => engine.load(artifact), (error: Error) => {
    assert(error instanceof ArtifactError);
    assert.equal(error.message, `The artifact is for linux/${arch}, but this machine is ${OS}/${HOST.arch}`);
    return true;
  });
});

Deno.test("artifacts for other systems differ in the code that enters and leaves a process, not in the functions", async () => {
  const engine = NewEngine();
  const codeFor = async (os: Machine["os"], arch: Machine["arch"]) => {
    const { code, description } = readArtifact(await engine.compileFor({ os, arch }, TEXT));
    const { machine, process } = description as { machine: string; process: { bytes: string } };
    return { code, machine, process: process.bytes };
  };
  const SYSTEMS = [["x64", ["linux", "darwin", "windows"]], ["arm64", ["linux", "darwin"]]] as const;
  for (const [arch, systems] of SYSTEMS) {
    const all = [];
    for (const os of systems) all.push(await codeFor(os, arch));
    assert.deepEqual(all.map(({ machine }) => machine), systems.map((os) => `${os}/${arch}`));
    for (const { code } of all) assert.deepEqual(code, all[0]?.code);
    assert.equal(new Set(all.map(({ process }) => process)).size, systems.length);
  }
});

Deno.test("an unsupported machine is refused by name", async () => {
  const engine = NewEngine();
  const machine = (fields: object) => ({ os: "linux", arch: "arm64", ...fields }) as Machine;
  const ROWS: [object, RegExp][] = [
    [
      { arch: "riscv64" },
      /Unsupported machine linux\/riscv64: expected one of linux\/x64, linux\/arm64, darwin\/x64, .*windows\/x64$/,
    ],
    [{ arch: "toString" }, /Unsupported machine linux\/toString/],
    [{ os: "windows" }, /Unsupported machine windows\/arm64/],
    [{ cpu: ["lse", "avx2"] }, /Unknown instruction set "avx2" of arm64: expected one of lse$/],
  ];
  for (const [fields, message] of ROWS) {
    await assert.rejects(engine.compileFor(machine(fields), TEXT), (error: Error) => {
      assert(error instanceof TypeError);
      assert.match(error.message, message);
      return true;
    });
  }
  await assert.rejects(engine.compileFor(machine({}), "(module (func (result i32)))"), /line 1|type mismatch/);
});
