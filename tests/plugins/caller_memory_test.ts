/**
 * Plugins that import their caller's memory: memory 0 is the current caller's, in both bounds modes, across traps and
 * growth.
 */
import assert from "node:assert/strict";
import { NewEngine, TrapError } from "@waft/engine";
import { PluginHost } from "../../project/plugins/plugin_host.ts";
import { CONTRACT, findingOf, hostOf, PLUGIN, projectOf, type TestPlugin } from "./plugin_project.ts";
import { digestBytes } from "../../project/base/integrity.ts";

const NS = `${CONTRACT}@1`;
const BOTH = { "caller.memory.read": {}, "caller.memory.write": {} };
const FUNCTIONS = `
  (func (export "${NS}#peek") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "${NS}#poke") (param i32 i32) (i32.store (local.get 0) (local.get 1)))
  (func (export "${NS}#own") (param i32) (result i32) (i32.load $own (i32.const 0)))
  (func (export "${NS}#pages") (result i32) (memory.size))
  (func (export "${NS}#grow") (param i32) (result i32) (local $old i32)
    (local.set $old (memory.grow (local.get 0)))
    (i32.store (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4)) (i32.const 77))
    (local.get $old))`;
const PLUGIN_WITH_SLOT = {
  provides: ["peek i32->i32", "poke i32,i32->", "own i32->i32", "pages ->i32", "grow i32->i32"],
  requests: BOTH,
  wat: `(module (import "waft:caller@1" "memory" (memory 0)) (memory $own 1) (data (memory $own) (i32.const 0) "OWN!")
    ${FUNCTIONS})`,
} satisfies TestPlugin;
const guest = (memory: string) =>
  `(module
    (import "${NS}" "peek" (func $peek (param i32) (result i32))) (import "${NS}" "poke" (func $poke (param i32 i32)))
    (import "${NS}" "own" (func $own (param i32) (result i32))) (import "${NS}" "pages" (func $pages (result i32)))
    (import "${NS}" "grow" (func $grow (param i32) (result i32)))
    ${memory}
    (func (export "peek") (param i32) (result i32) (call $peek (local.get 0)))
    (func (export "poke") (param i32 i32) (call $poke (local.get 0) (local.get 1)))
    (func (export "own") (param i32) (result i32) (call $own (local.get 0)))
    (func (export "pages") (result i32) (call $pages))
    (func (export "grow") (param i32) (result i32) (call $grow (local.get 0))))`;
const MEMORY = (text: string) =>
  `(memory (export "memory") 1 4) (data (i32.const 0) "${text}")
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "more") (result i32) (memory.grow (i32.const 1)))`;

for (const bounds of ["guard", "explicit"] as const) {
  const engine = NewEngine({ bounds });
  const start = (wat: string, plugin = PLUGIN_WITH_SLOT, imports = {}) =>
    new PluginHost(projectOf([plugin], "."), engine).start({
      module: engine.compile(wat),
      digest: digestBytes(new TextEncoder().encode(wat)),
      imports,
    });

  Deno.test(`caller memory, ${bounds}: the plugin's memory 0 is its caller's, its own is another`, () => {
    const [one, two] = [start(guest(MEMORY("AAAA"))), start(guest(MEMORY("BBBB")))];
    for (let i = 0; i < 2; i++) {
      assert.deepEqual([one.call({}, "peek", 0), two.call({}, "peek", 0)], [0x41414141, 0x42424242]);
      assert.equal(one.call({}, "own", 0), 0x214e574f);
    }
    one.call({}, "poke", 100, 7);
    assert.deepEqual([one.call({}, "load", 100), two.call({}, "load", 100)], [7, 0]);
    assert.deepEqual([one.call({}, "more"), one.call({}, "pages")], [1, 2]);
    assert.deepEqual([one.call({}, "peek", 131068), two.call({}, "pages")], [0, 1]);
    assert.deepEqual([one.call({}, "grow", 1), one.call({}, "load", 196604)], [2, 77]);
    assert.equal(one.call({}, "pages"), 3);
    assert.throws(
      () => one.call({}, "peek", 196605),
      (e) => e instanceof TrapError && e.message === `out of bounds memory access in plugin ${PLUGIN}`,
    );
    assert.equal(two.call({}, "peek", 0), 0x42424242, "the other guest goes on");
    two.close();
  });

  Deno.test(`caller memory, ${bounds}: a guest that imports its memory, none that exports none`, () => {
    const given = NewEngine({ bounds }).compile(`(module (memory (export "m") 1) (data (i32.const 0) "CCCC"))`)
      .instantiate();
    const graph = start(
      guest(`(import "host" "m" (memory 1)) (export "memory" (memory 0))`).replace(
        /^\(module/,
        `(module (import "host" "m" (memory $m 1))`,
      ).replace(`(import "host" "m" (memory 1))`, ""),
      PLUGIN_WITH_SLOT,
      { host: { m: given.exports.m } },
    );
    assert.equal(graph.call({}, "peek", 0), 0x43434343);
    graph.close();
    for (const memory of ["", "(memory 1)", `(memory (export "mem") 1)`]) {
      const none = start(guest(memory));
      assert.deepEqual([none.call({}, "pages"), none.call({}, "own", 0)], [0, 0x214e574f]);
      assert.throws(() => none.call({}, "peek", 0), /out of bounds memory access in plugin/);
    }
  });

  Deno.test(`caller memory, ${bounds}: empty before there is a caller; a 64-bit one is refused`, () => {
    const early = {
      ...PLUGIN_WITH_SLOT,
      wat: PLUGIN_WITH_SLOT.wat.replace(
        "(memory $own 1)",
        `(memory $own 1) (func $init (export "waft:self@1#init") (i32.store $own (i32.const 0) (memory.size)))
         (start $init)`,
      ),
    };
    const graph = start(guest(MEMORY("AAAA")), early);
    assert.equal(graph.call({}, "own", 0), 0);
    graph.close();
    const wide = start(guest(`(memory (export "memory") i64 1)`));
    assert.throws(() => wide.call({}, "pages"), /64-bit one, not a 32-bit one in plugin/);
  });
}

Deno.test("caller memory: other types are refused before anything runs; each caller's own through a plugin between", () => {
  for (const type of ["1", "0 1", "0 1 shared"]) {
    const plugin = { ...PLUGIN_WITH_SLOT, wat: PLUGIN_WITH_SLOT.wat.replace("(memory 0)", `(memory ${type})`) };
    assert.equal(findingOf(() => hostOf([plugin], ".")), "link.type", type);
  }
  const engine = NewEngine();
  const between = "t.example/between";
  const other: TestPlugin = {
    id: between,
    contract: between + "/c",
    provides: ["both i32->i32"],
    requests: BOTH,
    consumes: [{
      id: CONTRACT,
      major: 1,
      mode: "required",
      functions: [{ name: "peek", params: ["i32"], results: ["i32"] }],
    }],
    bindings: { [NS]: [PLUGIN] },
    // The inner plugin sees this module's export "memory"; its memory 0 is the guest's, before and after.
    wat: `(module (import "${NS}" "peek" (func $peek (param i32) (result i32)))
      (import "waft:caller@1" "memory" (memory 0)) (memory $own (export "memory") 1) (data (memory $own) (i32.const 0) "\\02")
      (func (export "${between}/c@1#both") (param i32) (result i32)
        (i32.add (i32.mul (i32.load8_u (i32.const 0)) (i32.const 100))
          (i32.add (i32.mul (call $peek (local.get 0)) (i32.const 10)) (i32.load8_u (i32.const 0))))))`,
  };
  const wat = `(module (import "${between}/c@1" "both" (func $both (param i32) (result i32)))
    (memory (export "memory") 1) (data (i32.const 0) "\\01")
    (func (export "both") (result i32) (call $both (i32.const 0))))`;
  const graph = new PluginHost(projectOf([PLUGIN_WITH_SLOT, other], "."), engine).start({
    module: engine.compile(wat),
    digest: digestBytes(new TextEncoder().encode(wat)),
  });
  assert.equal(graph.call({}, "both"), 121);
  graph.close();
});
