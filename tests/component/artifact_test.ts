/** Artifacts of components: loaded without compilation, and refused when they are damaged or of other options. */
import assert from "node:assert/strict";
import { ArtifactError, type EngineOptions, NewEngine } from "@waft/engine";
import { compileComponent, loadComponent } from "../../component/mod.ts";

/** A component with a nested one, whose function it calls, and a core module each. */
const NESTED = `(component
  (component $inner
    (core module $m (func (export "twice") (param i32) (result i32) (i32.mul (i32.const 2) (local.get 0))))
    (core instance $i (instantiate $m))
    (func (export "twice") (param "n" u32) (result u32) (canon lift (core func $i "twice"))))
  (instance $inner (instantiate $inner))
  (core func $twice (canon lower (func $inner "twice")))
  (core module $m
    (import "inner" "twice" (func $twice (param i32) (result i32)))
    (import "host" "add" (func $add (param i32) (result i32)))
    (func (export "run") (param i32) (result i32) (call $add (call $twice (local.get 0)))))
  (import "add" (func $add (param "n" u32) (result u32)))
  (core func $add (canon lower (func $add)))
  (core instance $i (instantiate $m
    (with "inner" (instance (export "twice" (func $twice))))
    (with "host" (instance (export "add" (func $add))))))
  (func (export "run") (param "n" u32) (result u32) (canon lift (core func $i "run"))))`;

type Exports = { run(n: number): number };
const imports = { add: (n: number) => n + 1 };

/** An engine that counts the modules that it compiles. */
function counting(options: EngineOptions = {}) {
  const origins: string[] = [];
  const engine = NewEngine({ ...options, explain: ({ origin }) => void origins.push(String(origin)) });
  return { engine, origins };
}

Deno.test("an artifact holds all core modules, and loading compiles none", () => {
  const component = compileComponent(NewEngine(), NESTED);
  const artifact = component.serialize();
  const { engine, origins } = counting();
  const loaded = loadComponent(engine, artifact);
  assert.deepEqual(origins.filter((origin) => origin === "compiled"), []);
  const { exports } = loaded.instantiate<Exports>({}, imports);
  assert.equal(exports.run(20), 41);
  for (let k = 0; k < 40; k++) assert.equal(exports.run(k), 2 * k + 1);
  assert.deepEqual(loadComponent(NewEngine(), loaded.serialize().buffer).serialize(), artifact);
  assert.throws(() => loaded.instantiate(), { name: "LinkError" });
});

Deno.test("an artifact that is damaged or cut off is refused", () => {
  const engine = NewEngine();
  const artifact = compileComponent(engine, NESTED).serialize();
  const refused = (bytes: Uint8Array, what: string) =>
    assert.throws(() => loadComponent(engine, bytes), (error: Error) => {
      assert.match(error.name, /^(?:ArtifactError|MalformedError|InvalidError)$/, what);
      return true;
    });
  for (let length = 0; length < artifact.length; length += length < 64 ? 1 : 97) {
    refused(artifact.slice(0, length), `${length} bytes`);
  }
  refused(Uint8Array.from([...artifact, 0]), "a byte too many");
  // Every bit of the header and of the component: its core modules would no longer be those of the machine code.
  const componentEnd = 36 + new DataView(artifact.buffer).getUint32(32, true) + 16;
  for (let bit = 0; bit < 8 * componentEnd; bit++) {
    const bytes = artifact.slice();
    bytes[bit >> 3] ^= 1 << (bit & 7);
    refused(bytes, `bit ${bit}`);
  }
  const shifted = new Uint8Array(artifact.length + 1).subarray(1);
  shifted.set(artifact);
  assert.equal(loadComponent(engine, shifted).instantiate<Exports>({}, imports).exports.run(1), 3);
});

Deno.test("an artifact of other options is refused", () => {
  const artifact = compileComponent(NewEngine(), NESTED).serialize();
  assert.throws(() => loadComponent(NewEngine({ fuel: true }), artifact), ArtifactError);
});
