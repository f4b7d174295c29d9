/**
 * Offsets of the binary form map back to lines and columns of the text.
 */
import assert from "node:assert/strict";
import { CodeReader } from "../wasm/code_reader.ts";
import { keywordOf } from "../wasm/opcodes.ts";
import { parseModule } from "./parse_module.ts";
import { TextPlaces } from "./text_places.ts";

const TEXT = `(module
  (import "a" "b" (func))
  (global i32 (i32.const 1))
  (table 1 funcref (ref.null func))
  (func $f (param i32) (local i64)
    (drop
      (i32.add (local.get 0)
        (i32.const 5)))
    block $b
      br $b
    end
    (if (local.get 0)
      (then (nop))
      (else (unreachable)))
    (try (do (nop)) (catch_all (nop))))
  (export "f" (func $f))
  (func)
  (elem (i32.const 0) func 0)
  (data "x"))`;

Deno.test("every instruction has its keyword's place, flat or folded", () => {
  const places = new TextPlaces();
  const module = parseModule(TEXT, { places });
  const lines = TEXT.split("\n");
  const seen: string[] = [];
  const { bytes, offset } = module.funcs[0].body;
  const reader = new CodeReader(bytes, 0, bytes.length, offset);
  reader.locals([]);
  while (!reader.done) {
    const word = keywordOf(reader.next());
    const place = places.placeOf(reader.at)!;
    const text = lines[place.line! - 1].slice(place.column! - 1);
    // The `end` of a folded block is its closing parenthesis.
    assert.ok(text.startsWith(word) || (word === "end" && text.startsWith(")")), `${word} is at "${text}"`);
    assert.deepEqual(places.placeOf(reader.offset - 1), place, "the last byte of the instruction");
    seen.push(`${place.line} ${word}`);
  }
  assert.deepEqual(seen.slice(0, 4), ["7 local.get", "8 i32.const", "7 i32.add", "6 drop"]);
  assert.equal(seen.length, 19);
});

Deno.test("fields have places; headers and types do not", () => {
  const places = new TextPlaces();
  const module = parseModule(TEXT, { places });
  const line = (offset: number) => places.placeOf(offset)?.line;
  assert.equal(line(module.imports[0].offset), 2);
  assert.equal(line(module.globals[0].init.offset), 3);
  assert.equal(line(module.tables[0].init!.offset), 4);
  assert.equal(line(module.funcs[0].body.offset), 5);
  assert.equal(line(module.exports[0].offset), 16);
  assert.equal(line(module.funcs[1].body.offset), 17);
  assert.equal(line(module.elems.at(0)!.offset), 18);
  assert.equal(line(module.datas[0].offset), 19);
  assert.equal(line(0), undefined);
  assert.equal(line(9), undefined);
  assert.equal(line(module.bytes.length), undefined);
});

Deno.test("a module in binary or in quotes has no places", () => {
  for (const text of ['(module quote "(func)")', '(module binary "\\00asm\\01\\00\\00\\00")']) {
    const places = new TextPlaces();
    const module = parseModule(text, { places });
    for (let offset = 0; offset <= module.bytes.length; offset++) assert.equal(places.placeOf(offset), undefined);
  }
});
