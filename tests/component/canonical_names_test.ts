/** Canonical interface names: `a:b/c@1` in place of a whole version, in text, binaries, and at links with the host. */
import assert from "node:assert/strict";
import { decodeComponent } from "../../component/binary/decode.ts";
import { compileBinary } from "../../component/component.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { printComponent } from "../../component/text/print_component.ts";
import { validateComponent } from "../../component/validate/validate_component.ts";
import { NewEngine } from "../../engine/mod.ts";

function validate(text: string): void {
  validateComponent(decodeComponent(componentToBinary(text)));
}

Deno.test("a version may be its canonical part, with the rest as versionsuffix", () => {
  for (const version of ["1", "12", "0.2", "0.0.3", "0.0.0", "1.2.3", "0.2.6-rc.1"]) {
    validate(`(component (import "a:b/c@${version}" (instance)))`);
  }
  const rests = [["1", ".2.3"], ["0.2", ".6-rc.1"], ["0.0.1", "-alpha"], ["0.0.1", ""]];
  for (const [version, suffix] of rests) {
    const text = `(component (import "a:b/c@${version}" (versionsuffix "${suffix}") (instance)))`;
    validate(text);
    const printed = printComponent(decodeComponent(componentToBinary(text)));
    assert.ok(printed.includes(`"a:b/c@${version}" (versionsuffix "${suffix}")`), printed);
  }
});

Deno.test("other parts of a version are refused, and suffixes that do not complete it", () => {
  for (const version of ["0", "01", "1.2", "0.0", "0.02", "0.0.03", "1x", ""]) {
    assert.throws(() => validate(`(component (import "a:b/c@${version}" (instance)))`), {
      name: "InvalidError",
      message: /is not a version/,
    }, version);
  }
  for (const [version, suffix] of [["1", ""], ["1", ".2"], ["0.2", "6"], ["0.0.1", ".2"]]) {
    const text = `(component (import "a:b/c@${version}" (versionsuffix "${suffix}") (instance)))`;
    assert.throws(() => validate(text), { name: "InvalidError", message: /is not a version/ }, text);
  }
  const whole = `(component (import "a:b/c@1.2.3" (versionsuffix "") (instance)))`;
  assert.throws(() => validate(whole), { name: "InvalidError", message: /not valid with `versionsuffix`/ });
});

Deno.test("canonical names meet those with a whole version, on both sides", () => {
  const component = compileBinary(
    NewEngine(),
    componentToBinary(`(component
      (import "a:b/c@0.2" (instance $c (export "next" (func (param "n" u32) (result u32)))))
      (core func $next (canon lower (func $c "next")))
      (core module $M
        (import "" "next" (func $next (param i32) (result i32)))
        (func (export "twice") (param i32) (result i32) (call $next (call $next (local.get 0)))))
      (core instance $m (instantiate $M (with "" (instance (export "next" (func $next))))))
      (func $twice (param "n" u32) (result u32) (canon lift (core func $m "twice")))
      (instance $d (export "twice" (func $twice)))
      (export "a:b/d@1" (versionsuffix ".4.0") (instance $d)))`),
  );
  const next = (n: number) => n + 1;
  for (const name of ["a:b/c@0.2", "a:b/c@0.2.7", "a:b/c"]) {
    const { exports } = component.instantiate<Record<string, { twice(n: number): number }>>({}, { [name]: { next } });
    assert.equal(exports["a:b/d@1"].twice(5), 7, name);
  }
  assert.throws(() => component.instantiate({}, { "a:b/c@0.3.0": { next } }), { name: "LinkError" });
});
