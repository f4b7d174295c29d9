/**
 * Guests that break the rules of the Canonical ABI (fixtures/hostile.wat): each breach is a trap with its reason, ends
 * the instance and nothing else. Arguments that JavaScript cannot convert are not a breach.
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { NewEngine } from "@waft/engine";
import { readFile } from "@waft/engine/internal/host/files";
import { HostQuota } from "../../component/async/host_quota.ts";
import { makeHostResource, objectOf, repOf } from "../../component/link/host_resources.ts";
import { compileComponent } from "../../component/mod.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";

const bytes = readFile(fileURLToPath(new URL("fixtures/hostile.wasm", import.meta.url)));
const component = compileComponent(NewEngine(), bytes);

type Exports = Record<string, (...args: unknown[]) => unknown>;

function instantiate(back: () => void = () => {}, host: (text: string) => unknown = () => "answer"): Exports {
  return component.instantiate<Exports>({}, { back, host }).exports;
}

/** Functions that trap, and the reason. */
const BREACHES: readonly (readonly [string, RegExp])[] = [
  ["misaligned-result", /not aligned/],
  ["result-out-of-bounds", /out of bounds/],
  ["far-string", /string is out of bounds/],
  ["endless-string", /string is too long/],
  ["bad-utf8", /not valid UTF-8/],
  ["bad-utf16", /not valid UTF-16/],
  ["odd-utf16", /not aligned/],
  ["far-list", /list pointer is out of bounds/],
  ["endless-list", /list is too long/],
  ["odd-list", /list pointer is not aligned/],
  ["bad-case", /discriminant/],
  ["bad-char", /Unicode scalar value/],
  ["double-drop", /unknown handle index/],
  ["use-after-drop", /unknown handle index/],
  ["wrong-type", /wrong type/],
  ["never-made", /unknown handle index/],
  ["bad-argument", /string is out of bounds/],
  ["bad-out-pointer", /not aligned/],
];

for (const [name, reason] of BREACHES) {
  Deno.test(`a guest's ${name} traps and ends its instance`, () => {
    const guest = instantiate();
    assert.throws(() => guest[name](), { name: "TrapError", message: reason });
    assert.throws(() => guest["take"]("text"), { name: "TrapError", message: /cannot enter/ });
    assert.equal(instantiate()["take"]("text"), 4);
  });
}

Deno.test("a pointer of realloc is checked before it is used", () => {
  const far = instantiate();
  far["set-mode"](1);
  assert.throws(() => far["take"]("text"), { name: "TrapError", message: /out of bounds/ });
  const wide = instantiate();
  wide["set-mode"](2);
  assert.equal(wide["take"]("text"), 4, "UTF-8 may be at any address");
});

Deno.test("a guest cannot be entered again by a function that it calls", () => {
  let inner: unknown;
  const guest: Exports = instantiate(() => {
    try {
      guest["take"]("text");
    } catch (error) {
      inner = error;
    }
  });
  guest["call-back"]();
  assert.match(String(inner), /TrapError: .*cannot enter component instance/);
  assert.equal(guest["take"]("text"), 4);
});

Deno.test("an argument or a result that JavaScript cannot convert does not end the instance of an export", () => {
  const guest = instantiate();
  assert.throws(() => guest["take"](5), TypeError);
  assert.throws(() => guest["take"](undefined), TypeError);
  assert.equal(guest["take"]("text"), 4);
});

Deno.test("an error while arguments are converted does not end the instance, whatever its type", () => {
  const source = `(component
    (core module $m (func (export "f") (param i64) (result i64) local.get 0))
    (core instance $i (instantiate $m))
    (type $r (record (field "x" s64)))
    (export $e "r" (type $r))
    (func (export "f") (param "r" $e) (result s64) (canon lift (core func $i "f"))))`;
  const { f } = compileComponent(NewEngine(), componentToBinary(source)).instantiate<Exports>({}, {}).exports;
  assert.throws(() => f({ x: "five" }), SyntaxError);
  const broken = {
    get x(): bigint {
      throw new RangeError("no value");
    },
  };
  assert.throws(() => f(broken), { name: "RangeError", message: "no value" });
  assert.equal(f({ x: 5 }), 5n);
});

Deno.test("an error that the host throws reaches the caller", () => {
  const guest = instantiate(() => {
    throw new RangeError("from the host");
  });
  assert.throws(() => guest["call-back"](), { name: "RangeError", message: "from the host" });
});

Deno.test("an object of a resource works until it is disposed of, and only for its own component", () => {
  type Thing = { get(): number; [Symbol.dispose](): void };
  const { Thing: First } = instantiate() as unknown as { Thing: new () => Thing };
  const { Thing: Second } = instantiate() as unknown as { Thing: new () => Thing };
  const thing = new First();
  assert.equal((thing as object) instanceof First, true);
  assert.equal((thing as object) instanceof Second, false);
  assert.equal(thing.get(), 42);
  assert.throws(() => Second.prototype.get.call(thing), TypeError);
  thing[Symbol.dispose]();
  thing[Symbol.dispose]();
  assert.throws(() => thing.get(), /disposed of/);
  assert.equal(new First().get(), 42);
});

Deno.test("an object of the host that guests own twice lives until the second handle is dropped", () => {
  let disposed = 0;
  const object = { [Symbol.dispose]: () => void disposed++ };
  const resource = makeHostResource("thing", { quota: new HostQuota(1024) });
  const [first, second] = [repOf(resource, object, true), repOf(resource, object, true)];
  resource.destroy!(first, undefined);
  assert.equal(objectOf(resource, second, false), object);
  resource.destroy!(second, undefined);
  assert.equal(disposed, 2);
});
