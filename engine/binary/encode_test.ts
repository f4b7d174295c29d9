/**
 * Encoding: decoding and encoding again gives the same bytes, and modules made by hand are encoded as the format
 * requires.
 */
import { loadWabt } from "../../tests/support/test_packages.ts";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { binaryForms } from "../../tests/support/binary_forms.ts";
import { HAS_TESTSUITE, NEEDS_TESTSUITE, suiteScripts } from "../../tests/support/testsuite.ts";
import { MalformedError } from "../base/errors.ts";
import { BytesView, type ElementSegment, emptyModule, emptyNames, type Module } from "../wasm/module.ts";
import { EXTERNREF, FUNCREF, HEAP, refType } from "../wasm/types.ts";
import { decodeModule } from "./decode.ts";
import { encodeModule } from "./encode.ts";

/** Everything of a module but its bytes and offsets, which encoding may change for input in a longer form. */
function contentOf(module: Module): unknown {
  return JSON.parse(JSON.stringify(module, (key, value) => {
    if (key === "offset" || key === "bytes" && value === module.bytes) return undefined;
    if (typeof value === "bigint") return `${value}n`;
    if (value instanceof BytesView) return [...value.bytes];
    return typeof value === "object" && value !== null && Symbol.iterator in value ? [...value] : value;
  }));
}

const SOURCE = `(module $m
  (type $f (func (param i32 i64) (result f32)))
  (import "env" "f" (func $imported (type $f)))
  (import "env" "g" (global $g (mut i64)))
  (import "env" "t" (table $t 1 2 externref))
  (table $u 3 funcref)
  (memory $a 1 2)
  (tag $e (param i32))
  (global $h (mut f64) (f64.const nan:0x123))
  (export "run" (func $run))
  (export "mem" (memory $a))
  (start $main)
  (elem $seg (table $u) (i32.const 0) func $run $main)
  (elem $passive func $main)
  (elem declare func $run)
  (elem (table $u) (i32.const 1) funcref (ref.func $run) (ref.null func))
  (elem externref (ref.null extern))
  (data $d (i32.const 8) "hello\\00")
  (data "passive")
  (func $main)
  (func $run (type $f) (local $x v128)
    (block $b (br_if $b (local.get 0)) (memory.init $a 1 (i32.const 0) (i32.const 0) (i32.const 1)))
    (f32.const -0))
)`;

Deno.test("encodeModule() reproduces the output of wabt byte for byte", async () => {
  const wabt = await loadWabt();
  const features = { exceptions: true, reference_types: true, simd: true, bulk_memory: true, multi_memory: true };
  for (const names of [false, true]) {
    const parsed = wabt.parseWat("m.wat", SOURCE, features);
    const { buffer } = parsed.toBinary({ canonicalize_lebs: true, write_debug_names: names });
    parsed.destroy();
    const module = decodeModule(buffer);
    assert.equal(module.names.module, names ? "m" : undefined);
    assert.deepEqual(encodeModule(module), new Uint8Array(buffer));
    if (!names) continue;
    assert.equal(module.names.funcs.get(2), "run");
    // Without the custom section, the encoder makes one of the names.
    const renamed = { ...module, customs: [] };
    const again = decodeModule(encodeModule(renamed));
    // wabt lists functions without local names too.
    for (const [index, locals] of module.names.locals) if (locals.size === 0) module.names.locals.delete(index);
    assert.deepEqual(again.names, module.names);
    assert.deepEqual(again.customs.map(({ name, after }) => [name, after]), [["name", 11]]);
  }
});

Deno.test({
  name: `encodeModule() keeps the content of the suite's binaries${NEEDS_TESTSUITE}`,
  ignore: !HAS_TESTSUITE,
  fn() {
    let count = 0;
    for (const path of suiteScripts()) {
      for (const { bytes, line } of binaryForms(readFileSync(path, "utf8"))) {
        let module: Module;
        try {
          module = decodeModule(bytes);
        } catch (error) {
          assert.ok(error instanceof MalformedError);
          continue;
        }
        count++;
        const encoded = encodeModule(module);
        const again = decodeModule(encoded);
        assert.ok(encoded.length <= bytes.length, `${path}:${line}`);
        // Empty sections are not written, so a custom section may follow another section than before.
        const place = { after: 0 };
        assert.deepEqual(
          contentOf({ ...again, customs: again.customs.map((custom) => ({ ...custom, ...place })) }),
          contentOf({ ...module, customs: module.customs.map((custom) => ({ ...custom, ...place })) }),
          `${path}:${line}`,
        );
        assert.deepEqual(encodeModule(again), encoded);
      }
    }
    assert.ok(count > 100, `${count}`);
  },
});

const EXPR = { bytes: Uint8Array.of(0x41, 0x00, 0x0b), offset: 0 };

Deno.test("encodeModule() writes each element segment in its shortest form that keeps its type", () => {
  const active = { kind: "active", table: 0, start: EXPR } as const;
  const other = { kind: "active", table: 5, start: EXPR } as const;
  const funcs = { kind: "funcs", indices: [7] } as const;
  const exprs = { kind: "exprs", exprs: [{ bytes: Uint8Array.of(0xd0, 0x6f, 0x0b), offset: 0 }] } as const;
  const start = [0x41, 0x00, 0x0b];
  const reference = refType(false, HEAP.func);
  const cases: readonly (readonly [number, ElementSegment["init"], ElementSegment["mode"], number[]])[] = [
    [reference, { ...funcs, indices: [7] }, active, [0, ...start, 1, 7]],
    [FUNCREF, { ...funcs, indices: [7] }, { kind: "passive" }, [1, 0, 1, 7]],
    [reference, { ...funcs, indices: [7] }, other, [2, 5, ...start, 0, 1, 7]],
    [reference, { ...funcs, indices: [] }, { kind: "declarative" }, [3, 0, 0]],
    [FUNCREF, { kind: "exprs", exprs: [] }, active, [4, ...start, 0]],
    [EXTERNREF, { ...exprs, exprs: [...exprs.exprs] }, { kind: "passive" }, [5, 0x6f, 1, 0xd0, 0x6f, 0x0b]],
    [EXTERNREF, { ...exprs, exprs: [...exprs.exprs] }, active, [6, 0, ...start, 0x6f, 1, 0xd0, 0x6f, 0x0b]],
    [FUNCREF, { kind: "exprs", exprs: [] }, other, [6, 5, ...start, 0x70, 0]],
    [EXTERNREF, { kind: "exprs", exprs: [] }, { kind: "declarative" }, [7, 0x6f, 0]],
    [refType(true, 3), { ...funcs, indices: [7] }, { kind: "passive" }, [5, 0x63, 3, 1, 0xd2, 7, 0x0b]],
  ];
  for (const [type, init, mode, expected] of cases) {
    const bytes = encodeModule({ ...emptyModule(), elems: [{ type, init, mode, offset: 0 }] });
    assert.deepEqual([...bytes.subarray(8)], [9, expected.length + 1, 1, ...expected]);
    assert.deepEqual(encodeModule(decodeModule(bytes)), bytes);
  }
});

Deno.test("encodeModule() puts custom sections back in their places, also where a section has become empty", () => {
  const customs = [0, 1, 10, 1, 11].map((after, i) => ({ name: String(i), bytes: Uint8Array.of(i), offset: 0, after }));
  const bytes = encodeModule({ ...emptyModule(), customs, memories: [] });
  const order = decodeModule(bytes).customs.map((custom) => custom.name);
  assert.deepEqual(order, ["0", "1", "3", "2", "4"]);
});

Deno.test("encodeModule() writes names in ascending order whatever order they were given in", () => {
  const names = emptyNames();
  names.funcs.set(9, "nine").set(1, "one");
  names.locals.set(4, new Map([[2, "b"], [0, "a"]])).set(3, new Map());
  const again = decodeModule(encodeModule({ ...emptyModule(), names })).names;
  assert.deepEqual([...again.funcs], [[1, "one"], [9, "nine"]]);
  assert.deepEqual([...again.locals].map(([index, map]) => [index, [...map]]), [[4, [[0, "a"], [2, "b"]]]]);
  assert.deepEqual([...encodeModule(emptyModule())], [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
});
