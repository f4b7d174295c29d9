/**
 * The bytes of a module belong to the module: programs that change, detach, resize or share their buffer afterwards,
 * guests whose memory it is among them, change neither the code that is optimized later nor data of new instances.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { compileComponent } from "../../component/mod.ts";
import { encodeModule } from "../../engine/binary/encode.ts";
import { type Memory, NewEngine } from "../../engine/mod.ts";
import { parseModule } from "../../engine/text/parse_module.ts";

/** Calls after which the code is optimized. */
const CALLS = 20;
const TEXT = `(module (memory (export "memory") 1) (data (i32.const 8) "hello")
  (func $constant (param i32) (result i32) (i32.add (local.get 0) (i32.const 55)))
  (func (export "f") (param i32) (result i32) (call $constant (local.get 0)))
  (func (export "load") (param i64) (result i32) (i32.load8_u (i32.wrap_i64 (local.get 0)))))`;
const BYTES = encodeModule(parseModule(TEXT));

/** A buffer with the module, and the way to take it away afterwards. */
interface Kind {
  readonly name: string;
  readonly make: () => Uint8Array;
  readonly ruin?: (bytes: Uint8Array) => void;
}

function filled(bytes: Uint8Array): Uint8Array {
  bytes.set(BYTES);
  return bytes;
}

const guest = NewEngine().compile(`(module (memory (export "memory") 1))`).instantiate();

const KINDS: readonly Kind[] = [
  { name: "an array", make: () => filled(new Uint8Array(BYTES.length)) },
  { name: "a shared buffer", make: () => filled(new Uint8Array(new SharedArrayBuffer(BYTES.length))) },
  { name: "a Buffer of Node", make: () => filled(Buffer.alloc(BYTES.length)) },
  {
    name: "the memory of a guest",
    make: () => filled(new Uint8Array((guest.exports["memory"] as Memory).buffer, 1000, BYTES.length)),
  },
  {
    name: "a buffer that is detached",
    make: () => filled(new Uint8Array(BYTES.length)),
    ruin: ({ buffer }) => void structuredClone(buffer, { transfer: [buffer as ArrayBuffer] }),
  },
  {
    name: "a buffer that shrinks",
    make: () => filled(new Uint8Array(new ArrayBuffer(BYTES.length, { maxByteLength: 1 << 16 }))),
    ruin: ({ buffer }) => (buffer as ArrayBuffer).resize(4),
  },
];

/** The place of the operand of `i32.const 55`. */
const CONSTANT_AT = BYTES.findIndex((byte, at) => byte === 0x41 && BYTES[at + 1] === 55) + 1;

/** Another constant, another text, another type of a parameter, and no `i32.wrap_i64`: valid, and different. */
function change(bytes: Uint8Array): void {
  const places = [CONSTANT_AT, BYTES.lastIndexOf(0x68), BYTES.indexOf(0x7e), BYTES.lastIndexOf(0xa7)];
  assert.ok(places.every((at) => at > 0));
  for (const [k, value] of [0x11, 0x4a, 0x7f, 0x01].entries()) bytes[places[k]] = value;
}

for (const { name, make, ruin } of KINDS) {
  Deno.test(`a module of ${name} keeps its bytes`, () => {
    for (
      const options of [{ tier: "auto", tierUpCalls: CALLS }, { tier: "baseline" }, { tier: "optimizing" }] as const
    ) {
      const bytes = make();
      const module = NewEngine(options).compile(bytes);
      const one = module.instantiate();
      change(bytes);
      ruin?.(bytes);
      for (let call = 0; call < 3 * CALLS; call++) assert.equal(one.call({}, "f", 1), 56);
      const other = module.instantiate();
      for (const instance of [one, other]) {
        assert.equal(instance.call({}, "load", 8n), "h".charCodeAt(0));
        assert.equal(instance.call({}, "load", 0x7_0000_0008n), "h".charCodeAt(0), "addresses of 32 bits");
      }
      const copy = module.isTieringUp ? undefined : NewEngine(options).load(module.serialize());
      assert.equal(copy?.instantiate().call({}, "f", 1) ?? 56, 56);
    }
  });
}

Deno.test("equal buffers with other contents give other modules", () => {
  const engine = NewEngine({ tier: "optimizing" });
  for (const { make, ruin } of KINDS) {
    if (ruin !== undefined) continue;
    const bytes = make();
    const first = engine.compile(bytes);
    bytes[CONSTANT_AT] = 0x11;
    const second = engine.compile(bytes);
    assert.deepEqual([first, second].map((module) => module.instantiate().call({}, "f", 1)), [56, 18]);
  }
});

Deno.test("a component keeps its bytes", () => {
  const bytes = componentToBinary(`(component
    (core module $m (func (export "f") (param i32) (result i32) (i32.add (local.get 0) (i32.const 55))))
    (core instance $i (instantiate $m))
    (func (export "f") (param "a" s32) (result s32) (canon lift (core func $i "f"))))`);
  for (const make of [(size: number) => new ArrayBuffer(size), (size: number) => new SharedArrayBuffer(size)]) {
    const own = new Uint8Array(make(bytes.length) as ArrayBuffer);
    own.set(bytes);
    const component = compileComponent(NewEngine({ tier: "auto", tierUpCalls: CALLS }), own);
    own.fill(0, 8);
    const instance = component.instantiate();
    for (let call = 0; call < 3 * CALLS; call++) assert.equal(instance.call({}, "f", 1), 56);
    assert.equal(component.instantiate().call({}, "f", 1), 56);
  }
});
