/**
 * The engine's option `verify: "code"`: proven modules run, code that is not proven is refused with its place before it
 * is placed in memory, and nothing else brings code into such an engine.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NewEngine, UnprovenCodeError } from "../../engine/mod.ts";
import { REASON } from "../../engine/verify/analysis.ts";
import { openArtifact } from "../../engine/api/open_cached_module.ts";

const ADD = `(module (memory 1) (func $add (export "add") (param i32 i32) (result i32)
  (i32.store (local.get 0) (i32.const 1))
  (i32.add (local.get 0) (local.get 1))))`;

/** A loop whose bounds are compared once, in front of it, for a number of turns that is no constant. */
const VERSIONED = readFileSync(new URL("../../bench/wasm/matrix.wasm", import.meta.url));

/** A jump table that is longer than any that the verifier follows. */
const UNPROVEN = `(module (func (export "f") (param i32) (result i32)
  (block $a (block $b (br_table ${"$a $b ".repeat(40_000)} (local.get 0))) (return (i32.const 1)))
  (i32.const 2)))`;

Deno.test("proven code of both tiers and both ways of bounds checking runs", () => {
  for (const tier of ["optimizing", "baseline"] as const) {
    for (const bounds of ["guard", "explicit", "auto"] as const) {
      const engine = NewEngine({ verify: "code", tier, bounds, interruptible: true, fuel: true });
      assert.equal(engine.compile(ADD).instantiate().call({}, "add", 40, 2), 42);
    }
  }
  assert.equal(NewEngine({ verify: "code" }).tier, "optimizing");
});

Deno.test("code that is not proven is refused with function, offset and reason", () => {
  const engine = NewEngine({ verify: "code", bounds: "explicit" });
  assert.throws(() => engine.compile(UNPROVEN), (error: unknown) => {
    assert(error instanceof UnprovenCodeError);
    const { functionIndex, codeOffset, reason, message } = error;
    assert.equal(reason, REASON.SWITCH);
    assert(functionIndex === 0 && codeOffset > 0);
    assert.equal(message, `The machine code of function 0 at offset ${codeOffset} is not proven: ${reason}`);
    return true;
  });
  assert.equal(engine.compile(ADD).instantiate().call({}, "add", 1, 2), 3);
});

Deno.test("a function that is not proven is compiled once more, with all its bounds checks", () => {
  const options = { tier: "optimizing", bounds: "explicit" } as const;
  const usual = NewEngine(options).compile(VERSIONED), proven = NewEngine({ ...options, verify: "code" });
  const modules = [proven.compile(VERSIONED), proven.compile(VERSIONED)].map((module) => module.serialize());
  assert.deepEqual(modules[0], modules[1]);
  assert.notDeepEqual(modules[0], usual.serialize());
  const [name] = usual.exports.map((row) => row.name).filter((name) => name === "run" || name === "main");
  const results = [usual, proven.compile(VERSIONED), NewEngine(options).load(modules[0])]
    .map((module) => module.instantiate().call({}, name, 20));
  assert.deepEqual(results, [results[0], results[0], results[0]]);
});

Deno.test("an engine that proves code takes none from artifacts and caches", () => {
  const artifact = NewEngine({ tier: "optimizing" }).compile(ADD).serialize();
  const engine = NewEngine({ verify: "code" });
  const refusal = { name: "TypeError", message: /loads no artifacts/ };
  assert.throws(() => engine.load(artifact), refusal);
  assert.throws(() => engine.loadFile("none"), refusal);
  assert.throws(() => openArtifact(artifact, { verify: "code" }), refusal);
  const directory = mkdtempSync(join(tmpdir(), "verified-"));
  try {
    const options = { tier: "optimizing", bounds: "explicit", cache: { directory } } as const;
    NewEngine(options).compile(UNPROVEN);
    assert.throws(() => NewEngine({ ...options, verify: "code" }).compile(UNPROVEN), UnprovenCodeError);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

Deno.test("options whose code cannot be proven are refused", async () => {
  assert.throws(() => NewEngine({ verify: "code", tier: "auto" }), /tier optimizing or baseline/);
  assert.throws(() => NewEngine({ verify: "code", optimizations: { "stack-fence": false } }), /stack-fence/);
  const wrong = { verify: "all" } as unknown as { verify: true };
  assert.throws(() => NewEngine(wrong), /verify must be true, false or "code", not "all"/);
  const engine = NewEngine({ verify: "code", bounds: "explicit" });
  for (const arch of ["x64", "arm64"] as const) {
    assert((await engine.compileFor({ os: "linux", arch }, ADD)).length > 0);
    await assert.rejects(engine.compileFor({ os: "linux", arch }, UNPROVEN), UnprovenCodeError);
  }
});
