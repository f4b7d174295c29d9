/**
 * Objects of the host that calls and resets of a component instance make: none. Alone in its file and on the baseline
 * tier: the background compilation of another test in the same realm would make views of its own.
 */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "../../component/mod.ts";

Deno.test("calls and resets of an instance compile no code and make no further views of its memory", async () => {
  const instance = compileComponent(
    NewEngine({ interruptible: true, tier: "baseline" }),
    `(component
      (core module $m
        (type $box (struct (field (mut i32))))
        (global $box (ref $box) (struct.new $box (i32.const 1)))
        (func (export "next") (param i32) (result i32)
          (struct.set $box 0 (global.get $box) (i32.add (struct.get $box 0 (global.get $box)) (local.get 0)))
          (struct.get $box 0 (global.get $box))))
      (core instance $m (instantiate $m))
      (func (export "next") (param "by" u32) (result u32) (canon lift (core func $m "next"))))`,
  ).instantiate({ resettable: true });
  const next = () => instance.callAsync({}, "next", 1);
  assert.equal(await next(), 2);
  instance.reset();
  const made: string[] = [];
  const constructors = ["Function", "ArrayBuffer"] as const;
  const { Function: OwnFunction, ArrayBuffer: OwnBuffer } = globalThis;
  const host = (globalThis as { Deno?: { UnsafePointerView: { getArrayBuffer(...args: unknown[]): ArrayBuffer } } })
    .Deno
    ?.UnsafePointerView;
  const view = host?.getArrayBuffer;
  for (const name of constructors) {
    const original = globalThis[name] as unknown as new (...args: unknown[]) => object;
    Object.assign(globalThis, {
      [name]: new Proxy(original, {
        construct(target, args, newTarget) {
          made.push(name);
          return Reflect.construct(target, args, newTarget) as object;
        },
      }),
    });
  }
  if (host !== undefined) {
    host.getArrayBuffer = (...args) => {
      made.push(`view${new Error().stack}`);
      return view!.call(host, ...args);
    };
  }
  try {
    for (let k = 0; k < 3; k++) {
      assert.equal(await next(), 2);
      instance.reset();
    }
  } finally {
    Object.assign(globalThis, { Function: OwnFunction, ArrayBuffer: OwnBuffer });
    if (host !== undefined) host.getArrayBuffer = view!;
  }
  assert.deepEqual(made, []);
  instance.close();
});
