/**
 * The plugin host with real modules: links, callers' memory, contracts, traps, order, hooks, limits.
 */
import assert from "node:assert/strict";
import { ExhaustionError, NewEngine, TrapError } from "@waft/engine";
import {
  CONTRACT,
  contractFunction,
  findingOf,
  guestModule,
  hostOf,
  PLUGIN,
  withPlugins,
} from "../../tests/plugins/plugin_project.ts";
import { pluginOf } from "./plugin_host.ts";

const NS = `${CONTRACT}@1`;

Deno.test("plugins: a guest calls a plugin; types and unknown functions are checked before anything runs", () => {
  const plugin = {
    provides: ["add i32,i32->i32", "wide i64,f32,f64->i64,f64", "nothing ->"],
    wat: `(module
      (func (export "${NS}#add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
      (func (export "${NS}#wide") (param i64 f32 f64) (result i64 f64)
        (i64.add (local.get 0) (i64.const 1)) (f64.add (f64.promote_f32 (local.get 1)) (local.get 2)))
      (func (export "${NS}#nothing")))`,
  };
  withPlugins(
    [plugin],
    `(module
      (import "${NS}" "add" (func $add (param i32 i32) (result i32)))
      (import "${NS}" "wide" (func $wide (param i64 f32 f64) (result i64 f64)))
      (import "${NS}" "nothing" (func $nothing))
      (func (export "add") (result i32) (call $nothing) (call $add (i32.const 40) (i32.const 2)))
      (func (export "wide") (result i64 f64) (call $wide (i64.const -9) (f32.const 0.5) (f64.const 0.25))))`,
    ({ call }) => {
      assert.equal(call("add"), 42);
      assert.deepEqual(call("wide"), [-8n, 0.75]);
    },
  );
  const host = hostOf([plugin], ".");
  const refused = (text: string) => findingOf(() => host.checkGuest(guestModule(text).module));
  assert.equal(refused(`(module (import "${NS}" "sub" (func)))`), "link.unlinked");
  assert.equal(refused(`(module (import "${NS}" "add" (func)))`), "link.type");
  assert.equal(refused(`(module (import "${NS}" "add" (memory 1)))`), "link.unlinked");
  assert.equal(refused(`(module (import "env" "add" (func)))`), "link.unlinked");
  assert.equal(refused(`(module (import "waft:self@1" "abort" (func (param i32 i32))))`), "link.unlinked");
  assert.equal(refused(`(module (import "__proto__" "toString" (func)))`), "link.unlinked");
});

Deno.test("plugins: exports of a module must match its contract, and can pass between instances", () => {
  const guest = `(module (import "${NS}" "go" (func)))`;
  const check = (wat: string, provides = ["go ->"], text = guest) =>
    findingOf(() => hostOf([{ wat, provides }], ".").checkGuest(guestModule(text).module));
  assert.equal(check(`(module (func (export "${NS}#go")))`), "ok");
  assert.equal(check(`(module)`), "link.type");
  assert.equal(check(`(module (func (export "${NS}#go") (param i32)))`), "link.type");
  assert.equal(check(`(module (global (export "${NS}#go") i32 (i32.const 0)))`), "link.type");
  assert.equal(
    check(
      `(module (func (export "${NS}#go") (param funcref)))`,
      ["go funcref->"],
      `(module (import "${NS}" "go" (func (param funcref))))`,
    ),
    "link.type",
  );
});

Deno.test("plugins: configuration, log, abort", () => {
  withPlugins(
    [{
      provides: ["size ->i32", "read i32,i32->i32", "byte i32->i32", "log i32,i32->", "abort ->"],
      config: { a: 1, b: "ü" },
      wat: `(module
        (import "waft:self@1" "config-size" (func $size (result i32)))
        (import "waft:self@1" "config-read" (func $read (param i32 i32) (result i32)))
        (import "waft:self@1" "log" (func $log (param i32 i32 i32)))
        (import "waft:self@1" "abort" (func $abort (param i32 i32)))
        (memory 1) (data (i32.const 100) "line\\1b[31m\\0a")
        (export "${NS}#size" (func $size)) (export "${NS}#read" (func $read))
        (func (export "${NS}#byte") (param i32) (result i32) (i32.load8_u (local.get 0)))
        (func (export "${NS}#log") (param i32 i32) (call $log (i32.const 1) (local.get 0) (local.get 1)))
        (func (export "${NS}#abort") (call $abort (i32.const 100) (i32.const 4)) unreachable))`,
    }],
    `(module
      (import "${NS}" "size" (func $size (result i32)))
      (import "${NS}" "read" (func $read (param i32 i32) (result i32)))
      (import "${NS}" "byte" (func $byte (param i32) (result i32)))
      (import "${NS}" "log" (func $log (param i32 i32)))
      (import "${NS}" "abort" (func $abort))
      (export "size" (func $size)) (export "read" (func $read)) (export "byte" (func $byte))
      (export "log" (func $log)) (export "abort" (func $abort)))`,
    ({ call, logged }) => {
      const size = call("size") as number;
      assert.equal(size, '{"a":1,"b":"ü"}'.length + 1);
      assert.equal(call("read", 8, 4), 4);
      assert.equal(call("byte", 8), 0x7b);
      assert.equal(call("byte", 12), 0);
      assert.equal(call("read", 65530, 100), -1, "room beyond the memory is out of bounds, even when not needed");
      assert.equal(call("read", -1, -1), -1);
      call("log", 100, 10);
      assert.deepEqual(logged, [`${PLUGIN} 1 line\\u{1b}[31m\\u{a}`]);
      assert.throws(() => call("abort"), { name: "TrapError", message: `abort: line in plugin ${PLUGIN}` });
      assert.throws(() => call("size"), /graph is closed after: abort: line/);
    },
  );
});

const MEMORY_PLUGIN = {
  provides: ["size ->i64", "read i64,i32,i32->i32", "write i64,i32,i32->i32", "peek i32->i32"],
  requests: { "caller.memory.read": {}, "caller.memory.write": {} },
  wat: `(module
    (import "waft:caller@1" "memory-size" (func $size (result i64)))
    (import "waft:caller@1" "read" (func $read (param i64 i32 i32) (result i32)))
    (import "waft:caller@1" "write" (func $write (param i64 i32 i32) (result i32)))
    (memory 1) (data (i32.const 0) "PLUGIN")
    (func (export "${NS}#size") (result i64) (call $size))
    (func (export "${NS}#read") (param i64 i32 i32) (result i32)
      (call $read (local.get 0) (local.get 1) (local.get 2)))
    (func (export "${NS}#write") (param i64 i32 i32) (result i32)
      (call $write (local.get 0) (local.get 1) (local.get 2)))
    (func (export "${NS}#peek") (param i32) (result i32) (i32.load (local.get 0))))`,
};
const MEMORY_GUEST = (memory: string) =>
  `(module
    (import "${NS}" "size" (func $size (result i64)))
    (import "${NS}" "read" (func $read (param i64 i32 i32) (result i32)))
    (import "${NS}" "write" (func $write (param i64 i32 i32) (result i32)))
    (import "${NS}" "peek" (func $peek (param i32) (result i32)))
    ${memory}
    (export "size" (func $size)) (export "read" (func $read)) (export "write" (func $write))
    (export "peek" (func $peek)))`;

Deno.test("plugins: the caller's memory through accessors, every bound", () => {
  withPlugins(
    [MEMORY_PLUGIN],
    MEMORY_GUEST(`(memory (export "memory") 2 3) (data (i32.const 0) "\\01\\02\\03\\04") 
      (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
      (func (export "grow") (result i32) (memory.grow (i32.const 1)))`),
    ({ call }) => {
      assert.equal(call("size"), 131072n);
      assert.equal(call("read", 0n, 64, 4), 0);
      assert.equal(call("peek", 64), 0x04030201);
      assert.equal(call("write", 131068n, 0, 4), 0);
      assert.equal(call("load", 131068), 0x47554c50);
      for (
        const [at, own, length] of [
          [131069n, 0, 4],
          [131072n, 0, 1],
          [-1n, 0, 1],
          [-4n, 0, 8],
          [1n << 32n, 0, 1],
          [0n, 65533, 4],
          [0n, -1, 1],
          [0n, 0, -1],
        ] as const
      ) {
        for (const name of ["read", "write"]) {
          assert.equal(call(name, at, own, length), 1, `${name} ${at} ${own} ${length}`);
        }
      }
      assert.equal(call("read", 131072n, 65536, 0), 0, "nothing at the very end is in bounds");
      assert.equal(call("peek", 64), 0x04030201, "nothing was copied");
      call("grow");
      assert.equal(call("read", 196604n, 64, 4), 0);
      assert.equal(call("size"), 196608n);
    },
  );
  for (const memory of ["", "(memory 1)", `(memory (export "mem") 1)`]) {
    withPlugins([MEMORY_PLUGIN], MEMORY_GUEST(memory), ({ call }) => {
      assert.deepEqual([call("size"), call("read", 0n, 0, 1), call("write", 0n, 0, 1)], [0n, 2, 2], memory);
    });
  }
});

Deno.test("plugins: the caller of a plugin is a plugin; each sees its own caller, also after a return", () => {
  const inner = `${CONTRACT}/inner`;
  const reader = (name: string) =>
    `(import "waft:caller@1" "read" (func $read (param i64 i32 i32) (result i32)))
     (func $first (result i32) (drop (call $read (i64.const 0) (i32.const 8) (i32.const 4))) (i32.load (i32.const 8)))
     (memory (export "memory") 1) (data (i32.const 0) "${name}")`;
  withPlugins(
    [
      {
        id: "t.example/inner",
        contract: inner,
        provides: ["see ->i32"],
        requests: { "caller.memory.read": {} },
        wat: `(module ${reader("innr")} (func (export "${inner}@1#see") (result i32) (call $first)))`,
      },
      {
        provides: ["see ->i32,i32,i32"],
        requests: { "caller.memory.read": {} },
        consumes: [{ id: inner, major: 1, mode: "required", functions: [contractFunction("see ->i32")] }],
        bindings: { [`${inner}@1`]: ["t.example/inner"] },
        wat: `(module (import "${inner}@1" "see" (func $inner (result i32))) ${reader("outr")}
          (func (export "${NS}#see") (result i32 i32 i32) (call $first) (call $inner) (call $first)))`,
      },
    ],
    `(module (import "${NS}" "see" (func $see (result i32 i32 i32))) (export "see" (func $see))
      (memory (export "memory") 1) (data (i32.const 0) "gues"))`,
    ({ call }) => {
      const word = (text: string) => new DataView(new TextEncoder().encode(text).buffer).getInt32(0, true);
      assert.deepEqual(call("see"), [word("gues"), word("outr"), word("gues")]);
    },
  );
});

Deno.test("plugins: contracts with many providers, none, and an unbound optional one", () => {
  const ns = `${CONTRACT}/many`;
  const provider = (n: number) => ({
    id: `t.example/m${n}`,
    contract: ns,
    provides: ["value i32->i32"],
    wat: `(module (func (export "${ns}@1#value") (param i32) (result i32)
      (i32.add (local.get 0) (i32.const ${n}))))`,
  });
  const consumer = (bound: readonly string[]) => ({
    provides: ["value i32,i32->i32", "count ->i32", "gone ->i64,f64"],
    consumes: [
      { id: ns, major: 1, mode: "many" as const, functions: [contractFunction("value i32->i32")] },
      { id: `${ns}/gone`, major: 1, mode: "optional" as const, functions: [contractFunction("x ->i64,f64")] },
    ],
    bindings: { [`${ns}@1`]: bound },
    wat: `(module
      (import "${ns}@1" "value" (func $value (param i32 i32) (result i32)))
      (import "${ns}@1" "#count" (func $count (result i32)))
      (import "${ns}/gone@1" "x" (func $gone (result i64 f64)))
      (func (export "${NS}#value") (param i32 i32) (result i32) (call $value (local.get 0) (local.get 1)))
      (func (export "${NS}#count") (result i32) (call $count))
      (func (export "${NS}#gone") (result i64 f64) (call $gone)))`,
  });
  const guest = `(module (import "${NS}" "value" (func $value (param i32 i32) (result i32)))
    (import "${NS}" "count" (func $count (result i32))) (import "${NS}" "gone" (func $gone (result i64 f64)))
    (export "value" (func $value)) (export "count" (func $count)) (export "gone" (func $gone)))`;
  withPlugins([provider(1), provider(2), consumer(["t.example/m2", "t.example/m1"])], guest, ({ call }) => {
    assert.deepEqual([call("count"), call("value", 0, 10), call("value", 1, 10)], [2, 11, 12]);
    assert.deepEqual(call("gone"), [3n, 0]);
    assert.throws(() => call("value", 2, 10), { message: `unknown provider 2 in plugin ${PLUGIN}` });
  });
  withPlugins([consumer([])], guest, ({ call }) => assert.equal(call("count"), 0));
});

Deno.test("plugins: import.define lets guests use an older namespace", () => {
  const plugin = {
    provides: ["go ->i32"],
    namespaces: ["old_name"],
    requests: { "import.define": { namespaces: ["old_name"] } },
    wat: `(module (func (export "${NS}#go") (result i32) (i32.const 7)))`,
  };
  const guest = `(module (import "old_name" "go" (func $go (result i32))) (export "go" (func $go)))`;
  withPlugins([plugin], guest, ({ call }) => assert.equal(call("go"), 7));
  assert.equal(findingOf(() => withPlugins([{ ...plugin, grants: {} }], guest, () => {})), "link.unlinked");
});

Deno.test("plugins: init in start order, stop in reverse, state per guest; a failing init closes everything", () => {
  const text = (id: string, more = "") =>
    `(module (import "waft:self@1" "log" (func $log (param i32 i32 i32)))
      ${more} (memory 1) (data (i32.const 0) "startinitstop")
      (func $start (call $log (i32.const 2) (i32.const 5) (i32.const 0)))
      (func (export "waft:self@1#init") (call $log (i32.const 2) (i32.const 5) (i32.const 4)))
      (func (export "waft:self@1#stop") (call $log (i32.const 2) (i32.const 9) (i32.const 4)))
      (global $n (mut i32) (i32.const 0))
      (func (export "${CONTRACT}/${id}@1#next") (result i32)
        (global.set $n (i32.add (global.get $n) (i32.const 1))) (global.get $n)))`;
  const a = { id: "t.example/z", contract: `${CONTRACT}/z`, provides: ["next ->i32"], wat: text("z") };
  const b = {
    id: "t.example/a",
    contract: `${CONTRACT}/a`,
    provides: ["next ->i32"],
    consumes: [{
      id: `${CONTRACT}/z`,
      major: 1,
      mode: "required" as const,
      functions: [contractFunction("next ->i32")],
    }],
    bindings: { [`${CONTRACT}/z@1`]: ["t.example/z"] },
    wat: text("a", `(import "${CONTRACT}/z@1" "next" (func (result i32)))`),
  };
  const guest = `(module (import "${CONTRACT}/z@1" "next" (func $n (result i32))) (export "n" (func $n)))`;
  const lines: string[] = [];
  const host = hostOf([a, b], ".", { log: (id, _, line) => lines.push(`${id} ${line}`) });
  const [one, two] = [host.start(guestModule(guest)), host.start(guestModule(guest))];
  assert.deepEqual([one.call({}, "n"), one.call({}, "n"), two.call({}, "n")], [1, 2, 1]);
  one.close();
  one.close();
  assert.throws(() => one.call({}, "n"), /graph is closed/);
  assert.equal(two.call({}, "n"), 2, "another guest's plugins go on");
  two.close();
  const round = ["t.example/z init", "t.example/a init"];
  const end = ["t.example/a stop", "t.example/z stop"];
  assert.deepEqual(lines, [...round, ...round, ...end, ...end]);
  const bad = {
    id: "t.example/bad",
    wat: `(module (func (export "waft:self@1#init") unreachable))`,
  };
  lines.length = 0;
  const failing = hostOf([a, bad], ".", { log: (id, _, line) => lines.push(`${id} ${line}`) });
  assert.throws(() => failing.start(guestModule(`(module)`)), { message: "unreachable in plugin t.example/bad" });
  assert.deepEqual(lines, [], "z comes after bad, and nothing of a failed graph is stopped");
});

Deno.test("plugins: a trap names the innermost plugin, closes its graph only, and keeps the frames", () => {
  const inner = `${CONTRACT}/inner`;
  const plugins = [
    {
      id: "t.example/inner",
      contract: inner,
      provides: ["fail ->"],
      wat: `(module (func $deep unreachable)
      (func (export "${inner}@1#fail") (call $deep)))`,
    },
    {
      provides: ["fail ->", "throw ->", "fine ->i32"],
      consumes: [{ id: inner, major: 1, mode: "required" as const, functions: [contractFunction("fail ->")] }],
      bindings: { [`${inner}@1`]: ["t.example/inner"] },
      wat: `(module (import "${inner}@1" "fail" (func $fail)) (tag $t)
        (func (export "${NS}#fail") (call $fail)) (func (export "${NS}#throw") (throw $t))
        (func (export "${NS}#fine") (result i32) (i32.const 5)))`,
    },
  ];
  const guest = `(module (import "${NS}" "fail" (func $fail)) (import "${NS}" "throw" (func $throw))
    (import "${NS}" "fine" (func $fine (result i32)))
    (export "fine" (func $fine))
    (func (export "fail") (call $fail))
    (func (export "own") unreachable)
    (func (export "catch") (block (try_table (catch_all 0) (call $throw)))))`;
  const host = hostOf(plugins, ".");
  const [one, two] = [host.start(guestModule(guest)), host.start(guestModule(guest))];
  assert.throws(() => one.call({}, "own"), { message: "unreachable" });
  assert.equal(one.call({}, "fine"), 5, "a trap of the guest alone closes nothing");
  assert.throws(() => one.call({}, "fail"), (error) => {
    assert.ok(error instanceof TrapError);
    assert.equal(error.message, "unreachable in plugin t.example/inner");
    assert.equal(pluginOf(error), "t.example/inner");
    assert.ok(error.frames.length >= 1);
    return true;
  });
  assert.throws(() => one.call({}, "fine"), /graph is closed after: unreachable in plugin/);
  assert.throws(() => one.guest.call({}, "fine"), /closed/);
  assert.equal(two.call({}, "fine"), 5);
  assert.throws(() => two.call({}, "catch"), { message: `uncaught exception in plugin ${PLUGIN}` });
  one.close();
  two.close();
});

Deno.test("plugins: hooks observe and refuse calls, and are told of the module", () => {
  const say = `(import "waft:self@1" "log" (func $log (param i32 i32 i32)))
    (import "waft:hooks@1" "subject-size" (func $size (result i32)))
    (import "waft:hooks@1" "subject-read" (func $read (param i32 i32) (result i32)))
    (memory 1)
    (func $say (param $level i32)
      (drop (call $read (i32.const 0) (i32.const 100)))
      (call $log (local.get $level) (i32.const 0) (call $size)))`;
  const observer = {
    requests: { "invoke.observe": {}, "module.observe": {} },
    wat: `(module ${say}
      (func (export "waft:hooks@1#before-call") (call $say (i32.const 1)))
      (func (export "waft:hooks@1#after-call") (param i32) (call $say (i32.add (i32.const 2) (local.get 0))))
      (func (export "waft:hooks@1#module-compiled") (call $say (i32.const 4))))`,
  };
  const judge = {
    id: "t.example/judge",
    requests: { "invoke.intercept": {} },
    // Refuses names that begin with "n".
    wat: `(module ${say} (func (export "waft:hooks@1#intercept-call") (result i32)
      (drop (call $read (i32.const 0) (i32.const 1))) (i32.eq (i32.load8_u (i32.const 0)) (i32.const 110))))`,
  };
  const guest = `(module (func (export "yes")) (func (export "no")) (func (export "trap") unreachable))`;
  withPlugins([observer, judge], guest, ({ call, logged }) => {
    call("yes");
    assert.throws(() => call("no"), { message: 'the call of "no" was refused by plugin t.example/judge' });
    assert.throws(() => call("trap"), { message: "unreachable" });
    assert.deepEqual(logged, [
      `${PLUGIN} 4 ${guestModule(guest).digest}`,
      ...["1 yes", "2 yes", "1 trap", "3 trap"].map((line) => `${PLUGIN} ${line}`),
    ]);
  });
  // Exported hooks without the grant are never called.
  const silent = { wat: `(module (func (export "waft:hooks@1#before-call") unreachable))` };
  withPlugins([silent], guest, ({ call }) => call("yes"));
});

Deno.test("plugins: memory and tables are limited together; too much at once is refused before anything runs", () => {
  const growing = (memories: string, pages: number) => ({
    provides: ["grow i32->i32"],
    maxMemoryPages: pages,
    wat: `(module ${memories} (func (export "${NS}#grow") (param i32) (result i32) (memory.grow (local.get 0))))`,
  });
  const guest = `(module (import "${NS}" "grow" (func $grow (param i32) (result i32))) (export "grow" (func $grow)))`;
  withPlugins([growing("(memory 1)", 4)], guest, ({ call }) => {
    assert.deepEqual([call("grow", 3), call("grow", 1), call("grow", -1)], [1, -1, -1]);
  });
  withPlugins([growing("(memory 1) (memory 1)", 4)], guest, ({ call }) => {
    assert.deepEqual([call("grow", 1), call("grow", 1)], [1, -1]);
  });
  assert.equal(findingOf(() => withPlugins([growing("(memory 5)", 4)], guest, () => {})), "link.limits");
  assert.equal(
    findingOf(() => withPlugins([{ wat: "(module (table 9000000 funcref))" }], "(module)", () => {})),
    "link.limits",
  );
});

Deno.test("plugins: endless recursion between guest and plugin ends in exhaustion", () => {
  withPlugins(
    [{
      provides: ["again ->"],
      requests: { "caller.call": { exports: ["again"] } },
      wat: `(module (import "waft:caller@1" "call" (func $call (param i32 i32 i32 i32 i32 i32) (result i32)))
        (memory 1) (data (i32.const 0) "again")
        (func (export "${NS}#again")
          (drop (call $call (i32.const 0) (i32.const 5) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))))`,
    }],
    `(module (import "${NS}" "again" (func $again)) (func (export "again") (call $again)))`,
    ({ call, graph }) => {
      assert.throws(() => call("again"), (error) => error instanceof ExhaustionError);
      assert.throws(() => call("again"), /graph is closed/);
      graph.close();
      assert.equal(
        NewEngine().compile(`(module (func (export "f") (result i32) (i32.const 3)))`).instantiate().call({}, "f"),
        3,
      );
    },
  );
});
