/**
 * Small components that ask for much: instances, values, handles. Each gets one error, and the host keeps its memory.
 */
import assert from "node:assert/strict";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { NewEngine } from "@waft/engine";
import { GENERATED } from "../../component/abi/generated.ts";
import { GuestMemory } from "../../component/abi/guest_memory.ts";
import { INTERPRETED } from "../../component/abi/interpreted.ts";
import type { ValType } from "../../component/model/types.ts";
import { compileComponent } from "../../component/mod.ts";
import { ComponentWasi } from "../../component/wasi/mod.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";

const engine = NewEngine({ interruptible: true, fuel: true });

function compile(text: string) {
  return compileComponent(engine, componentToBinary(text));
}

/** A component that instantiates another one twice, which does the same, `levels` times. */
function doubling(levels: number, innermost: string): string {
  const nested = Array.from({ length: levels }, (_, k) =>
    `(component $c${k + 1} (alias outer 1 $c${k} (component $x))
      (instance (instantiate $x)) (instance (instantiate $x)))`);
  return `(component (component $c0 ${innermost}) ${nested.join(" ")} (instance (instantiate $c${levels})))`;
}

Deno.test("a component that doubles its instances at every level gets an error", () => {
  const message = "A component can have at most 10000 instances of components and modules";
  assert.throws(() => compile(doubling(40, "")).instantiate(), { name: "RangeError", message });
  const module = "(core module $m) (core instance (instantiate $m))";
  assert.throws(() => compile(doubling(40, module)).instantiate(), { name: "RangeError", message });
  compile(doubling(8, module)).instantiate();
});

Deno.test("the limits of an instantiation apply to all of its core instances together", () => {
  const spin = `(core module $m (func $s (local i32)
    (loop (local.set 0 (i32.add (local.get 0) (i32.const 1))) (br_if 0 (i32.lt_u (local.get 0) (i32.const 1000)))))
    (start $s)) (core instance (instantiate $m))`;
  const component = compile(doubling(5, spin));
  const context = { fuel: 1_000_000 };
  component.instantiate(context);
  const used = 1_000_000 - context.fuel;
  assert.ok(used > 32_000, `${used} units`);
  assert.throws(() => component.instantiate({ fuel: Math.floor(used / 2) }), { code: "out-of-fuel" });
  const endless = `(core module $m (func $s (loop (br 0))) (start $s)) (core instance (instantiate $m))`;
  assert.throws(() => compile(doubling(1, endless)).instantiate({ deadline: 20 }), { code: "interrupted" });
  const plain = compileComponent(NewEngine(), componentToBinary("(component)"));
  assert.throws(() => plain.instantiate({ deadline: 20 }), { name: "TypeError", message: /interruptible/ });
});

/** Lifts a list from a memory of 1 MiB: `count` elements at 0, each of which is `word`, `length`, repeated. */
function liftList(layer: typeof GENERATED, type: ValType, count: number, length: number): unknown {
  const buffer = new ArrayBuffer(1 << 20);
  const words = new Uint32Array(buffer, 0, 2 * Math.min(count, 1 << 16));
  for (let k = 0; k < words.length; k += 2) words[k + 1] = length;
  const memory = new GuestMemory({ buffer }, "i32", undefined);
  const lift = layer.lifter([type], "i32", 16).bind({ memory, encoding: "utf8", handles: [], foreign: false });
  return lift([0, count])[0];
}

for (const [name, layer] of [["generated", GENERATED], ["interpreted", INTERPRETED]] as const) {
  Deno.test(`lists whose elements overlap trap before they exhaust memory, ${name}`, () => {
    const tooLarge = { name: "TrapError", message: /the values of one call are too large/ };
    const u8: ValType = { kind: "u8" };
    const list = (element: ValType): ValType => ({ kind: "list", element });
    assert.throws(() => liftList(layer, list(list(u8)), 1 << 16, 1 << 19), tooLarge);
    assert.throws(() => liftList(layer, list({ kind: "string" }), 1 << 16, 1 << 19), tooLarge);
    assert.throws(() => liftList(layer, list(list({ kind: "option", type: u8 })), 1 << 16, 1 << 16), tooLarge);
    for (let round = 0; round < 20; round++) {
      assert.equal((liftList(layer, list({ kind: "string" }), 1 << 6, 1 << 19) as unknown[]).length, 1 << 6, "anew");
    }
  });
}

Deno.test("a value whose type is large traps before it exhausts memory", () => {
  const component = compile(`(component
    (type $t (list (tuple u8) 100_000_000))
    (core module $m (memory (export "m") 2000) (func (export "f") (result i32) (i32.const 0)))
    (core instance $i (instantiate $m))
    (alias core export $i "m" (core memory $memory))
    (func (export "f") (result $t) (canon lift (core func $i "f") (memory $memory))))`);
  const message = /the values of one call are too large/;
  assert.throws(() => component.instantiate().call({}, "f"), { name: "TrapError", message });
});

Deno.test("handles of all instances of a component together are limited", () => {
  const component = compile(`(component
    (type $r (resource (rep i32)))
    (core func $new (canon resource.new $r))
    (core module $m (import "" "new" (func $new (param i32) (result i32)))
      (func (export "f") (loop (drop (call $new (i32.const 7))) (br 0))))
    (core instance $i (instantiate $m (with "" (instance (export "new" (func $new))))))
    (func (export "f") (canon lift (core func $i "f"))))`);
  const instance = component.instantiate();
  assert.throws(() => instance.call({}, "f"), { name: "TrapError", message: /too many handles/ });
});

Deno.test("zeros are written in pieces of the size that checkWrite permits", () => {
  const file = join(mkdtempSync(join(tmpdir(), "waft-zeros-")), "file");
  const fd = openSync(file, "w");
  const wasi = new ComponentWasi({ stdio: [0, fd, fd] });
  type Stdout = { getStdout(): { checkWrite(): bigint; writeZeroes(length: bigint): void } };
  const out = (wasi.imports["wasi:cli/stdout"] as Stdout).getStdout();
  const permitted = out.checkWrite();
  out.writeZeroes(permitted);
  for (const length of [permitted + 1n, 2n ** 33n, 2n ** 64n - 1n]) {
    assert.throws(() => out.writeZeroes(length), { name: "RangeError", message: /can be written at once/ });
  }
  wasi.close();
  closeSync(fd);
  assert.equal(readFileSync(file).length, Number(permitted));
  rmSync(dirname(file), { recursive: true });
});

Deno.test("a long chain of components that instantiate each other gets an error", () => {
  const levels = 9_000;
  const nested = Array.from(
    { length: levels },
    (_, k) => `(component $c${k + 1} (alias outer 1 $c${k} (component $x)) (instance (instantiate $x)))`,
  );
  const text = `(component (component $c0) ${nested.join(" ")} (instance (instantiate $c${levels})))`;
  assert.throws(() => compile(text).instantiate(), { name: "RangeError", message: /nested too deeply/ });
});

Deno.test("a reset returns the handles of an instance to the limit", () => {
  const component = compile(`(component
    (type $r (resource (rep i32)))
    (core func $new (canon resource.new $r))
    (core module $m (import "" "new" (func $new (param i32) (result i32)))
      (func (export "f") (local i32)
        (loop (drop (call $new (i32.const 7))) (local.set 0 (i32.add (local.get 0) (i32.const 1)))
          (br_if 0 (i32.lt_u (local.get 0) (i32.const 400_000))))))
    (core instance $i (instantiate $m (with "" (instance (export "new" (func $new))))))
    (func (export "f") (canon lift (core func $i "f"))))`);
  const instance = component.instantiate({ resettable: true });
  for (let round = 0; round < 4; round++) {
    instance.call({}, "f");
    instance.reset();
  }
  instance.call({}, "f");
  instance.call({}, "f");
  assert.throws(() => instance.call({}, "f"), { name: "TrapError", message: /too many handles/ });
});

Deno.test("calls between components beyond the limit of adapters have the same results", () => {
  const lowers = Array.from({ length: 2_100 }, (_, k) => `(core func $l${k} (canon lower (func $f)))`).join(" ");
  const component = compile(`(component
    (component $a
      (core module $m (func (export "f") (param i32) (result i32) (i32.add (local.get 0) (i32.const 1))))
      (core instance $i (instantiate $m))
      (func (export "f") (param "x" u32) (result u32) (canon lift (core func $i "f"))))
    (component $b
      (import "f" (func $f (param "x" u32) (result u32))) ${lowers}
      (core module $m (import "" "first" (func $first (param i32) (result i32)))
        (import "" "last" (func $last (param i32) (result i32)))
        (func (export "g") (param i32) (result i32) (call $first (call $last (local.get 0)))))
      (core instance $i (instantiate $m
        (with "" (instance (export "first" (func $l0)) (export "last" (func $l2099))))))
      (func (export "g") (param "x" u32) (result u32) (canon lift (core func $i "g"))))
    (instance $ia (instantiate $a))
    (instance $ib (instantiate $b (with "f" (func $ia "f"))))
    (export "g" (func $ib "g")))`);
  assert.equal(component.instantiate().call({}, "g", 40), 42);
});
