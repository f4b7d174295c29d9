/**
 * Rules of canonical definitions and of core types in components, as scripts: context slots, exceptions that leave a
 * lifted function, memories, core types, and core modules that pass from one root component to the next.
 */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { featureSet } from "@waft/engine/internal/features";
import { decodeComponent } from "../../component/binary/decode.ts";
import { compileComponent } from "../../component/mod.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { parseComponentScript } from "../../component/script/commands.ts";
import { runComponentScript } from "../../component/script/run.ts";
import { validateComponent } from "../../component/validate/validate_component.ts";

/** Runs a script of which every command passes. */
async function pass(script: string): Promise<void> {
  const { failures, left, otherMessages } = await runComponentScript(parseComponentScript(script));
  assert.deepEqual(failures, []);
  assert.deepEqual([...left], []);
  assert.deepEqual(otherMessages, []);
}

/** A component whose function gets a string; `realloc` sets the context slot that the function reads. */
const slots = (type: string, isAsync: boolean) =>
  `(component
  (core func $get (canon context.get ${type} 0))
  (core func $set (canon context.set ${type} 0))
  (core func $return (canon task.return (result u32)))
  (core module $M
    (import "" "get" (func $get (result ${type})))
    (import "" "set" (func $set (param ${type})))
    (import "" "return" (func $return (param i32)))
    (memory (export "m") 1)
    (func $value (result i32) ${type === "i64" ? "(i32.wrap_i64 (call $get))" : "(call $get)"})
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (if (call $value) (then unreachable))
      (call $set (${type}.const 7))
      (i32.const 64))
    (func (export "f") (param i32 i32) (result i32) (call $value))
    (func (export "g") (param i32 i32) (call $return (call $value))))
  (core instance $m (instantiate $M (with "" (instance
    (export "get" (func $get)) (export "set" (func $set)) (export "return" (func $return))))))
  (func (export "f") ${isAsync ? "async" : ""} (param "s" string) (result u32)
    (canon lift (core func $m "${isAsync ? "g" : "f"}") (memory (core memory $m "m"))
      (realloc (core func $m "realloc")) ${isAsync ? "async" : ""})))`;

Deno.test("realloc has context slots of its own", async () => {
  for (const isAsync of [false, true]) {
    for (const type of ["i32", ...(isAsync ? [] : ["i64"])]) {
      const call = '(assert_return (invoke "f" (str.const "abc")) (u32.const 0))';
      await pass(`${slots(type, isAsync)} ${call} ${call}`);
    }
  }
});

Deno.test("all context slots of a component have one type", async () => {
  const mixed = (first: string, second: string) =>
    `(component
    (core func (canon context.get ${first} 0))
    (core func (canon context.set ${second} 1)))`;
  await pass(`${mixed("i64", "i64")} ${mixed("i32", "i32")}
    (assert_invalid ${mixed("i32", "i64")} "must have the same type")
    (assert_invalid ${mixed("i64", "i32")} "must have the same type")
    (component (component (core func (canon context.get i32 0))) (core func (canon context.get i64 0)))`);
});

/** A component whose functions throw: called directly, with a task, and by another component that catches. */
const throwing = (extra: string) =>
  `(component
  ${extra}
  (component $Inner
    (core module $M
      (tag $e)
      (func (export "throw") (param i32) (result i32) (throw $e))
      (func (export "same") (param i32) (result i32) (local.get 0)))
    (core instance $m (instantiate $M))
    (func (export "throw") (param "x" u32) (result u32) (canon lift (core func $m "throw")))
    (func (export "same") (param "x" u32) (result u32) (canon lift (core func $m "same"))))
  (instance $inner (instantiate $Inner))
  (core func $throw (canon lower (func $inner "throw")))
  (core func $same (canon lower (func $inner "same")))
  (core module $M
    (import "" "throw" (func $throw (param i32) (result i32)))
    (import "" "same" (func $same (param i32) (result i32)))
    (func (export "same") (param i32) (result i32) (call $same (local.get 0)))
    (func (export "catch") (result i32)
      (block $caught
        (try_table (catch_all $caught) (return (call $throw (i32.const 1)))))
      (i32.const 7)))
  (core instance $m (instantiate $M (with "" (instance
    (export "throw" (func $throw)) (export "same" (func $same))))))
  (func (export "same") (param "x" u32) (result u32) (canon lift (core func $m "same")))
  (func (export "catch") (result u32) (canon lift (core func $m "catch")))
  (export "throw" (func $inner "throw")))`;

Deno.test("an exception that leaves a lifted function is a trap, also for components that catch all", async () => {
  const message = `"an exception left the code of a component"`;
  for (const extra of ["", "(core func (canon task.cancel))"]) {
    await pass(`${throwing(extra)} (assert_return (invoke "same" (u32.const 5)) (u32.const 5))
      (assert_trap (invoke "catch") ${message})
      ${throwing(extra)} (assert_trap (invoke "throw" (u32.const 1)) ${message})
      (assert_trap (invoke "throw" (u32.const 1)) "cannot enter component instance")`);
    const instance = compileComponent(NewEngine(), throwing(extra)).instantiate();
    await assert.rejects(instance.callAsync({}, "throw", 1), { name: "TrapError", message: /exception left/ });
  }
  await pass(`(component
    (core func $return (canon task.return))
    (core module $M (tag $e) (func (export "f") (throw $e)) (func (export "start") (throw $e)))
    (core instance $m (instantiate $M))
    (func (export "f") async (canon lift (core func $m "f") async)))
    (assert_trap (invoke "f") ${message})
    (assert_trap (component
      (core module $M (tag $e) (func $start (throw $e)) (start $start))
      (core instance (instantiate $M))) ${message})`);
});

Deno.test("canonical functions do not use shared memories", async () => {
  const lifting = (memory: string, definitions: string) =>
    `(component
    (core module $M (memory (export "m") 1 1 ${memory}) (func (export "f") (result i32) (i32.const 0))
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0)))
    (core instance $m (instantiate $M))
    (alias core export $m "m" (core memory $memory))
    ${definitions})`;
  const lift = `(func (export "f") (result string) (canon lift (core func $m "f") (memory $memory)))`;
  const wait = `(core func (canon waitable-set.wait (memory $memory)))`;
  const text = `(core func (canon error-context.new (memory $memory)))`;
  for (const definition of [lift, wait, text]) {
    await pass(`${lifting("", definition)} (assert_invalid ${lifting("shared", definition)} "shared flag")`);
  }
});

Deno.test("canonical functions do not use memories with pages of one byte", () => {
  const features = featureSet({ "custom-page-sizes": true });
  const validate = (size: string) =>
    validateComponent(
      decodeComponent(componentToBinary(`(component
        (core module $M (memory (export "m") 9 9 ${size}) (func (export "f") (result i32) (i32.const 0)))
        (core instance $m (instantiate $M))
        (alias core export $m "m" (core memory $memory))
        (func (export "f") (result string) (canon lift (core func $m "f") (memory $memory))))`)),
      { features },
    );
  validate("(pagesize 65536)");
  assert.throws(() => validate("(pagesize 1)"), { message: /mismatch in page size for memories/ });
});

Deno.test("core types refer to core types, not to module types", async () => {
  const message = `"core type 0 is a module type"`;
  await pass(`(component (core type $t (func)) (core type (func (param (ref $t)))))
    (assert_invalid (component (core type $t (module)) (core type (func (param (ref $t))))) ${message})
    (assert_invalid (component (core type $t (module)) (core type (func (result (ref null $t))))) ${message})
    (assert_invalid (component (core type $t (module)) (core type (struct (field (ref $t))))) ${message})
    (assert_invalid (component (core type $t (module)) (core type (array (mut (ref null $t))))) ${message})`);
});

Deno.test("recursive groups of core types, and their names", async () => {
  await pass(`
    (component
      (core type $f (func))
      (core rec (type $a (struct (field (ref null $b)))) (type $b (struct (field (ref null $a) (ref $f)))))
      (core type $g (func (param (ref $a)) (result (ref $b)))))
    (component
      (core type $first (rec (type (sub (struct (field (ref null 1))))) (type $b (sub 0 (struct (field (ref null 1)))))))
      (core type (func (param (ref $first) (ref $b)))))
    (component (type (component (core rec (type $a (func (param (ref $b)))) (type $b (func (result (ref $a))))))))
    (component (core type $outer (func)) (core type (module
      (rec (type $a (struct (field (ref null $b)))) (type $b (struct (field (ref null $a)))))
      (alias outer 1 $outer (type $o))
      (import "" "f" (func (type $o))))))
    (assert_malformed (component (core rec (type $a (func)) (type $a (func)))) "")
    (assert_malformed (component (core type $a (func)) (core type (rec (type $a (func))))) "")
    (assert_malformed (component (type (variant (case $a "x") (case $b "y") (case $a "z")))) "duplicate case identifier")
    (component (type (variant (case $a "x") (case $b "y") (case "z"))))`);
});

Deno.test("a module type may declare types that are not final, in both binary forms", () => {
  const bytes = componentToBinary("(component (core type (module (type (sub (func))))))");
  validateComponent(decodeComponent(bytes));
  const at = bytes.findIndex((byte, k) => byte === 0x50 && bytes[k + 1] === 0x01 && bytes[k + 2] === 0x01);
  assert.deepEqual([...bytes.subarray(at)], [0x50, 1, 1, 0x50, 0, 0x60, 0, 0]);
  const prefixed = Uint8Array.of(...bytes.subarray(0, at + 3), 0, ...bytes.subarray(at + 3));
  // The size of the section, which has one definition.
  prefixed[at - 2]++;
  validateComponent(decodeComponent(prefixed));
});

Deno.test("core modules pass from one root component to the next; others are refused with the reason", async () => {
  const importing = (type: string) =>
    `(component
    (import "A" (instance $a (export "module" (core module ${type}))))
    (core instance $m (instantiate (module $a "module") (with "h" (instance))))
    (func (export "f") (result u32) (canon lift (core func $m "f"))))`;
  const exact = `(export "f" (func (result i32)))`;
  await pass(`
    (component $A (core module (export "module") (func (export "f") (result i32) (i32.const 5)) (memory (export "m") 1)))
    ${importing(exact)}
    (assert_return (invoke "f") (u32.const 5))
    (assert_unlinkable (component (import "A" (instance (export "module" (core module (export "g" (func)))))))
      "missing expected export \`g\`")
    (assert_unlinkable (component (import "A" (instance (export "module" (core module (export "f" (func)))))))
      "type mismatch in export \`f\`")
    (assert_unlinkable (component (import "A" (instance (export "f" (func))))) "imports are missing")
    (assert_unlinkable (component (import "B" (instance (export "module" (core module))))) "B#module: a core module")
    (register "B" $A)
    (component (import "B" (instance (export "module" (core module)))))
    (component $C (core module $M (import "h" "x" (func))) (export "module" (core module $M)))
    (register "latest")
    (assert_unlinkable (component (import "latest" (instance (export "module" (core module))))) "missing expected import")
    (component (import "latest" (instance (export "module" (core module (import "h" "x" (func)))))))`);
  const foreign = NewEngine().compile("(module)");
  const component = compileComponent(NewEngine(), `(component (import "m" (core module)))`);
  assert.throws(() => component.instantiate({}, { m: foreign }), /only core modules that a component exports/);
  assert.throws(() => component.instantiate({}, { m: {} }), /m: a core module/);
});
