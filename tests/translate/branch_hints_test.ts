/** Branch hints of a module reach the branches of the IR, and block placement moves the unlikely code to the end. */
import assert from "node:assert/strict";
import { NewEngine } from "../../engine/mod.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { translateText } from "../support/translate_text.ts";

const hinted = (hint: string) =>
  `(module (func (param i32 i32) (result i32)
    (block $cold
      ${hint === "" ? "" : `(@metadata.code.branch_hint "${hint}")`} (br_if $cold (local.get 0))
      (return (local.get 1)))
    (i32.mul (local.get 1) (i32.const 3))))`;

const hintedIf = (hint: string, condition: string) =>
  `(module (func (param i32) (result i32)
    (@metadata.code.branch_hint "${hint}") (if (result i32) ${condition} (then (i32.const 1)) (else (i32.const 2)))))`;

Deno.test("a hint becomes the hint of the BRANCH", () => {
  assert.match(translateText(hinted("\\00")), /BRANCH v1 b\d\(.*\) b\d\(.*\) unlikely/);
  assert.match(translateText(hinted("\\01")), /BRANCH v1 b\d\(.*\) b\d\(.*\) likely/);
  assert.doesNotMatch(translateText(hinted("")), /likely/);
});

Deno.test("the hint of an `if` is that of its first arm, also when the condition is negated", () => {
  assert.match(translateText(hintedIf("\\01", "(local.get 0)")), / likely/);
  assert.match(translateText(hintedIf("\\01", "(i32.eqz (local.get 0))")), / unlikely/);
  assert.match(translateText(hintedIf("\\00", "(i32.eqz (local.get 0))")), / likely/);
});

Deno.test("a damaged section gives no hints, and the module stays valid", () => {
  const section = (bytes: string) =>
    `(module (func (param i32) (block (br_if 0 (local.get 0))))
      (@custom "metadata.code.branch_hint" (before code) "${bytes}"))`;
  for (
    const bytes of ["\\01", "\\01\\07\\01\\05\\01\\00", "\\01\\00\\01\\05\\02\\00\\00", "\\01\\00\\01\\05\\01\\02"]
  ) {
    const valid = validateModule(parseModule(section(bytes)), featureSet());
    assert.equal(valid.branchHints.size, 0, bytes);
  }
  assert.equal(validateModule(parseModule(section("\\01\\00\\01\\05\\01\\01")), featureSet()).branchHints.size, 1);
});

Deno.test("hints do not change results", () => {
  for (const hint of ["", "\\00", "\\01"]) {
    const text = hinted(hint).replace("(func", '(func (export "f")');
    const instance = NewEngine({ verify: true }).compile(text).instantiate();
    assert.deepEqual([instance.call({}, "f", 0, 7), instance.call({}, "f", 1, 7)], [7, 21]);
  }
});
