/** Scripts of components: the commands and values of the text form, and the outcome of commands that fail. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isComponentScript, parseComponentScript } from "../../component/script/commands.ts";
import { type ComponentScriptResult, runComponentScript } from "../../component/script/run.ts";
import { javaScriptValue } from "../../component/script/values.ts";
import { MalformedError } from "../../engine/base/errors.ts";
import { waft } from "../cli_project/waft.ts";

/** A component with a function that returns its argument, and one that traps. */
const COMPONENT = `(component definition $C
  (core module $M
    (func (export "same") (param i32) (result i32) (local.get 0))
    (func (export "fail") unreachable))
  (core instance $m (instantiate $M))
  (func (export "same") (param "x" s8) (result s8) (canon lift (core func $m "same")))
  (func (export "fail") (canon lift (core func $m "fail"))))
(component instance $c $C)`;

async function run(commands: string): Promise<ComponentScriptResult> {
  return await runComponentScript(parseComponentScript(COMPONENT + commands));
}

Deno.test("values have their JavaScript form", () => {
  const [command] = parseComponentScript(`(invoke "f"
    (u32.const 0xffff_ffff) (s8.const -0x80) (s8.const 0xff) (u64.const 18446744073709551615) (s64.const -1)
    (f32.const nan) (f64.const -0x1p-1074) (bool.const true) (char.const "🍰") (str.const "a\\00b") (enum.const "one")
    (list.const (u8.const 1) (u8.const 2)) (tuple.const) (flags.const "a-b")
    (record.const (field "some-name" str.const "x") (field "v" list.const (u8.const 3)))
    (option.none) (option.some (u8.const 1)) (result.ok) (result.err (u8.const 2))
    (variant.const "c") (variant.const "d" (char.const "e")))`);
  assert.ok(command.kind === "action");
  const no = undefined;
  assert.deepEqual(command.action.args.map(javaScriptValue), [
    ...[0xffff_ffff, -128, -1, 0xffff_ffff_ffff_ffffn, -1n, NaN, -5e-324, true, "🍰", "a\0b", "one", [1, 2], []],
    ...[{ aB: true }, { someName: "x", v: [3] }, no, 1, { tag: "ok" }, { tag: "err", val: 2 }],
    ...[{ tag: "c" }, { tag: "d", val: "e" }],
  ]);
});

Deno.test("malformed commands are rejected with their place", () => {
  for (
    const [text, message] of [
      [`(invoke "f" (u8.const 256))`, "u8 constant out of range"],
      [`(invoke "f" (s8.const -129))`, "s8 constant out of range"],
      [`(invoke "f" (i32.const 1))`, "unexpected token i32.const"],
      [`(invoke "f" (bool.const 1))`, "unexpected token 1"],
      [`(assert_nothing (component))`, "unexpected token assert_nothing"],
      [`(module)`, "unexpected token module"],
      [`(component`, "end of text"],
    ]
  ) {
    assert.throws(() => parseComponentScript(text), (error: unknown) => {
      assert.ok(error instanceof MalformedError, String(error));
      assert.ok(error.message.includes(message), error.message);
      return true;
    });
  }
});

Deno.test("scripts of components are told from those of modules", () => {
  for (const text of ["(component)", `(assert_invalid (component) "m")`, ";; (module)\n(component definition)"]) {
    assert.ok(isComponentScript(text), text);
  }
  for (
    const text of ["", "(module)", `(module (; component ;))(invoke "component")`, "(component-a)", "(assert_trap"]
  ) {
    assert.ok(!isComponentScript(text), text);
  }
});

Deno.test("commands that do not hold fail, and the script goes on", async () => {
  const { kinds, failures, left } = await run(`
    (assert_return (invoke "same" (s8.const -7)) (s8.const -7))
    (assert_return (invoke "same" (s8.const 1)) (s8.const 2))
    (assert_return (invoke "nothing"))
    (assert_return (invoke $unknown "same"))
    (assert_trap (invoke "same" (s8.const 1)) "no trap")
    (assert_invalid (component) "valid")
    (assert_malformed (component (import "a" (func (type 7)))) "invalid only")
    (assert_trap (component) "instantiable")
    (component instance $d $C)
    (assert_trap (invoke $d "fail") "unreachable")`);
  assert.deepEqual(failures.map(({ message }) => message.split("\n")[0]), [
    "same: the result is 1, expected 2",
    `there is no exported function "nothing"`,
    "there is no instance unknown",
    `expected the trap "no trap", but nothing happened`,
    `expected "valid", but the component was accepted`,
    failures[5].message,
    `expected the trap "instantiable", but nothing happened`,
  ]);
  assert.match(failures[5].message, /^expected "invalid only", got InvalidError/);
  assert.deepEqual(kinds.get("assert_return"), { passed: 1, failed: 3, left: 0 });
  assert.deepEqual(kinds.get("assert_trap"), { passed: 1, failed: 1, left: 0 });
  assert.equal(left.size, 0);
});

Deno.test("waft wast runs scripts of components", async () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-script-"));
  try {
    const file = join(folder, "c.wast");
    writeFileSync(file, `${COMPONENT}\n(assert_return (invoke "same" (s8.const 3)) (s8.const 4))\n`);
    const { code, out } = await waft(["wast", file], folder, folder);
    assert.equal(out, `${file}:9: same: the result is 3, expected 4\n2 passed, 1 failed, 0 skipped\n`);
    assert.equal(code, 1);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
