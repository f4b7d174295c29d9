/**
 * Groups of imports (proposal "Compact Import Section") in the binary and the text form: the same imports as without
 * groups, unchanged by encoding, printing and parsing, and refused if the feature is off.
 */
import assert from "node:assert/strict";
import { decodeModule } from "../../engine/binary/decode.ts";
import { encodeModule } from "../../engine/binary/encode.ts";
import { NewEngine } from "../../engine/mod.ts";
import { WebAssembly } from "../../engine/webassembly/mod.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { printModule } from "../../engine/text/print.ts";
import type { ImportGroup, Module } from "../../engine/wasm/module.ts";
import { generateModules } from "../fuzz/generate_module.ts";

/** Module, function name and type of each import. */
function importsOf({ imports }: Module): unknown[] {
  return imports.map(({ module, name, desc }) => ({ module, name, desc }));
}

/** The types of the host's namespace lack tags. */
const { Tag } = WebAssembly as unknown as { Tag: new (type: { parameters: string[] }) => WebAssembly.Global };

const TEXT = `(module
  (import "a" "first" (func $first))
  (import "m" (item "f" (func $f (param i32) (result i32))) (item "g" (global $g (mut i64))) (item "" (memory 1)))
  (import "n" (item "x") (item "y") (item "z") (global f32))
  (import "n" (item "t") (table 1 funcref))
  (import "b" "last" (tag $last (param f64)))
  (func (export "run") (result f32)
    (call $first)
    (drop (call $f (i32.const 1)))
    (f32.add (global.get 1) (f32.add (global.get 2) (global.get 3)))))`;

Deno.test("groups of imports: names, types and indices, also through print and parse", () => {
  const module = parseModule(TEXT);
  assert.deepEqual(module.imports.map(({ module: from, name, desc }) => `${from}.${name} ${desc.kind}`), [
    "a.first func",
    "m.f func",
    "m.g global",
    "m. memory",
    "n.x global",
    "n.y global",
    "n.z global",
    "n.t table",
    "b.last tag",
  ]);
  assert.deepEqual(module.importGroups.map(({ start, count, sameType }) => [start, count, sameType]), [
    [1, 3, false],
    [4, 3, true],
    [7, 1, true],
  ]);
  const printed = printModule(module);
  assert.match(printed, /\(import "n" \(item "x"\) \(item "y"\) \(item "z"\) \(global f32\)\)/);
  assert.deepEqual(encodeModule(parseModule(printed)), module.bytes);
  assert.deepEqual(encodeModule(decodeModule(module.bytes)), module.bytes);
  const calls: string[] = [];
  const instance = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(module.bytes)), {
    a: { first: () => calls.push("first") },
    m: {
      f: (x: number) => calls.push(`f ${x}`),
      g: new WebAssembly.Global({ value: "i64", mutable: true }, 1n),
      "": new WebAssembly.Memory({ initial: 1 }),
    },
    n: { x: 1, y: 2, z: 4, t: new WebAssembly.Table({ element: "anyfunc", initial: 1 }) },
    b: { last: new Tag({ parameters: ["f64"] }) },
  });
  assert.equal((instance.exports.run as () => number)(), 7);
  assert.deepEqual(calls, ["first", "f 1"]);
});

Deno.test("a group of one type whose imports have names is printed with a type for each", () => {
  const module = parseModule(`(module (import "n" (item "x") (item "y") (func)))`);
  module.names.funcs.set(1, "why");
  const printed = printModule(module);
  assert.match(
    printed,
    /\(import "n"\n {4}\(item "x" \(func \(;0;\) \(type 0\)\)\)\n {4}\(item "y" \(func \$why \(type 0\)\)\)\)/,
  );
  assert.deepEqual(importsOf(parseModule(printed)), importsOf(module));
});

Deno.test("groups of imports of random modules: the same imports, whatever is grouped", () => {
  let groups = 0;
  for (let seed = 0; seed < 150; seed++) {
    for (const bytes of generateModules(seed)) {
      const module = decodeModule(bytes);
      const grouped = withGroups(module, seed);
      groups += grouped.importGroups.length;
      const again = decodeModule(encodeModule(grouped));
      assert.deepEqual(importsOf(again), importsOf(module), `seed ${seed}`);
      assert.deepEqual(importsOf(parseModule(printModule(again))), importsOf(module), `seed ${seed}`);
    }
  }
  assert.ok(groups > 100, `${groups} groups`);
});

/** The module with each run of imports from one module as a group, if `seed` selects it. */
function withGroups(module: Module, seed: number): Module {
  const importGroups: ImportGroup[] = [];
  for (let start = 0; start < module.imports.length;) {
    const { module: from, desc, offset } = module.imports[start];
    const typed = (seed + start) % 2 === 0;
    let end = start + 1;
    while (
      module.imports[end]?.module === from &&
      (!typed || JSON.stringify(module.imports[end].desc, text) === JSON.stringify(desc, text))
    ) end++;
    if ((seed + start) % 3 !== 0) {
      importGroups.push({
        module: from,
        start,
        count: end - start,
        sameType: typed,
        desc: typed ? desc : undefined,
        offset,
      });
    }
    start = end;
  }
  return { ...module, importGroups };
}

function text(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}` : value;
}

Deno.test("groups of imports: the form must be known, the names are read within the section, and the limit holds", () => {
  const section = (...content: number[]) =>
    Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 2, content.length, ...content);
  for (
    const [content, message] of [
      [[1, 1, 0x61, 0, 0x7d, 1], /malformed import kind/],
      [[1, 1, 0x61, 1, 0x62, 0x7f, 0], /malformed import kind/],
      [[1, 1, 0x61, 0, 0x7f, 1, 1, 0x62, 0, 0, 9], /section size mismatch/],
      [[1, 1, 0x61, 0, 0x7e, 0, 0, 2, 1, 0x62], /length out of bounds|unexpected end/],
      [[1, 1, 0x61, 0, 0x7e, 0, 0, 0xff, 0xff, 0xff, 0x7f], /unexpected end/],
    ] as const
  ) {
    assert.throws(() => decodeModule(section(...content)), { name: "MalformedError", message }, `${content}`);
  }
  const empty = decodeModule(section(1, 1, 0x61, 0, 0x7e, 0, 0, 0));
  assert.deepEqual([empty.imports.length, empty.importGroups.length], [0, 1]);
  assert.deepEqual(encodeModule(empty), empty.bytes);
});

Deno.test("groups of imports that are switched off are refused by the name of the feature", () => {
  const engine = NewEngine({ features: { "compact-import-section": false } });
  assert.throws(() => engine.validate(`(module (import "a" (item "b" (func))))`), {
    name: "UnsupportedError",
    message: /a group of imports needs the feature compact-import-section/,
  });
  engine.validate(`(module (import "a" "b" (func)))`);
});
