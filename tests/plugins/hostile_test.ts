/**
 * Hostile plugins: each attempts an operation that was not granted and gets a clear error; the host keeps running.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NewEngine, TrapError } from "@waft/engine";
import { HOST_FUNCTIONS } from "../../project/definitions/authorities.ts";
import { CONTRACT, contractFunction, findingOf, guestModule, hostOf, PLUGIN, withPlugins } from "./plugin_project.ts";
import { LACKS_LINKS } from "../support/posix_files.ts";

const NS = `${CONTRACT}@1`;

/** The host still works: a new engine compiles and runs. */
function hostGoesOn(): void {
  const module = NewEngine().compile(`(module (memory 1) (func (export "f") (param i32) (result i32)
    (i32.store (i32.const 8) (local.get 0)) (i32.load (i32.const 8))))`);
  assert.equal(module.instantiate().call({}, "f", 77), 77);
}

Deno.test("hostile: every authority that was not granted, in one module: each import is named, and nothing runs", () => {
  const rows = [...HOST_FUNCTIONS.values()].filter((row) => row.authorities.length > 0);
  const list = (word: string, types: readonly string[]) => types.length === 0 ? "" : `(${word} ${types.join(" ")})`;
  const wat = `(module ${
    rows.map((row) =>
      `(import "${row.namespace}" "${row.name}" (func ${list("param", row.type.params)} ${
        list("result", row.type.results)
      }))`
    ).join("\n")
  } (func $start unreachable) (start $start))`;
  try {
    hostOf([{ wat }], ".");
    assert.fail("it linked");
  } catch (error) {
    const { diagnostics } = error as { diagnostics: { code: string; message: string }[] };
    assert.equal(diagnostics.length, rows.length);
    for (const [i, { code, message }] of diagnostics.entries()) {
      assert.equal(code, "link.unlinked");
      assert.ok(message.includes(`"${rows[i]!.namespace}" "${rows[i]!.name}"`), message);
    }
  }
  hostGoesOn();
});

Deno.test("hostile: other guests' state, memory and traps stay theirs", () => {
  const plugin = {
    provides: ["store i32->", "load ->i32", "steal i64->i32", "die ->"],
    requests: { "caller.memory.read": {} },
    wat: `(module (import "waft:caller@1" "read" (func $read (param i64 i32 i32) (result i32)))
      (memory 1) (global $g (mut i32) (i32.const 0))
      (func (export "${NS}#store") (param i32) (global.set $g (local.get 0)) (i32.store (i32.const 0) (local.get 0)))
      (func (export "${NS}#load") (result i32) (i32.add (global.get $g) (i32.load (i32.const 0))))
      (func (export "${NS}#steal") (param i64) (result i32)
        (if (call $read (local.get 0) (i32.const 64) (i32.const 4)) (then (return (i32.const -1))))
        (i32.load (i32.const 64)))
      (func (export "${NS}#die") unreachable))`,
  };
  const guest = (secret: string) =>
    `(module (import "${NS}" "store" (func $s (param i32))) (import "${NS}" "load" (func $l (result i32)))
    (import "${NS}" "steal" (func $t (param i64) (result i32))) (import "${NS}" "die" (func $d))
    (memory (export "memory") 1) (data (i32.const 0) "${secret}")
    (export "store" (func $s)) (export "load" (func $l)) (export "steal" (func $t)) (export "die" (func $d)))`;
  const host = hostOf([plugin], ".");
  const one = host.start(guestModule(guest("AAAA")));
  const two = host.start(guestModule(guest("BBBB")));
  one.call({}, "store", 1000);
  assert.deepEqual([one.call({}, "load"), two.call({}, "load")], [2000, 0]);
  // The plugin reads its own caller, in any order of calls.
  assert.deepEqual([one.call({}, "steal", 0n), two.call({}, "steal", 0n), one.call({}, "steal", 0n)], [
    0x41414141,
    0x42424242,
    0x41414141,
  ]);
  assert.equal(two.call({}, "steal", 65536n), -1);
  assert.throws(() => one.call({}, "die"), { message: `unreachable in plugin ${PLUGIN}` });
  assert.equal(two.call({}, "steal", 0n), 0x42424242);
  // The stack of callers survived the trap: a fresh guest of the same host sees itself.
  const three = host.start(guestModule(guest("CCCC")));
  assert.equal(three.call({}, "steal", 0n), 0x43434343);
  for (const graph of [one, two, three]) graph.close();
});

Deno.test("hostile: the caller's memory out of bounds, between growing and with every size", () => {
  withPlugins(
    [{
      provides: ["copy i64,i32,i32->i32"],
      requests: { "caller.memory.read": {}, "caller.memory.write": {} },
      wat: `(module (import "waft:caller@1" "read" (func $read (param i64 i32 i32) (result i32)))
        (import "waft:caller@1" "write" (func $write (param i64 i32 i32) (result i32))) (memory 1)
        (func (export "${NS}#copy") (param i64 i32 i32) (result i32)
          (i32.or (call $read (local.get 0) (local.get 1) (local.get 2))
            (call $write (local.get 0) (local.get 1) (local.get 2)))))`,
    }],
    `(module (import "${NS}" "copy" (func $copy (param i64 i32 i32) (result i32))) (memory (export "memory") 1)
      (export "copy" (func $copy)))`,
    ({ call }) => {
      const edges = [0n, 1n, 65535n, 65536n, 65537n, (1n << 31n) - 1n, 1n << 31n, 1n << 32n, (1n << 63n) - 1n, -1n];
      const sizes = [0, 1, 65535, 65536, 65537, 0x7fffffff, -1, -65536];
      for (const at of edges) {
        for (const own of [0, 1, 65535, 65536, -1]) {
          for (const size of sizes) {
            const fits = (size >>> 0) + Number(BigInt.asUintN(64, at)) <= 65536 && (own >>> 0) + (size >>> 0) <= 65536;
            assert.equal(call("copy", at, own, size), fits ? 0 : 1, `${at} ${own} ${size}`);
          }
        }
      }
    },
  );
  hostGoesOn();
});

Deno.test("hostile: endless allocation of memory, tables, children and sockets ends at a limit", () => {
  withPlugins(
    [{
      provides: ["pages ->i32", "elements ->i32", "children ->i32"],
      requests: { "instance.manage": { maxInstances: 5, maxMemoryBytes: 1 << 20 } },
      maxMemoryPages: 20,
      wat: `(module (import "waft:instance@1" "create" (func $create (param i32 i32) (result i32)))
        (memory 1) (data (i32.const 0) "\\00asm\\01\\00\\00\\00") (table $t 1 funcref)
        (func (export "${NS}#pages") (result i32) (local $n i32)
          (loop $l (if (i32.ge_s (memory.grow (i32.const 1)) (i32.const 0))
            (then (local.set $n (i32.add (local.get $n) (i32.const 1))) (br $l)))) (local.get $n))
        (func (export "${NS}#elements") (result i32)
          (loop $l (br_if $l (i32.ge_s (table.grow $t (ref.null func) (i32.const 100000)) (i32.const 0))))
          (table.size $t))
        (func (export "${NS}#children") (result i32) (local $n i32)
          (loop $l (if (i32.ge_s (call $create (i32.const 0) (i32.const 8)) (i32.const 0))
            (then (local.set $n (i32.add (local.get $n) (i32.const 1))) (br $l)))) (local.get $n)))`,
    }],
    `(module (import "${NS}" "pages" (func $p (result i32))) (import "${NS}" "elements" (func $e (result i32)))
      (import "${NS}" "children" (func $c (result i32)))
      (export "pages" (func $p)) (export "elements" (func $e)) (export "children" (func $c)))`,
    ({ call }) => {
      assert.deepEqual([call("pages"), call("pages"), call("children"), call("children")], [19, 0, 5, 0]);
      const elements = call("elements") as number;
      assert.ok(elements > 800_000 && elements <= 1_000_000, `${elements}`);
    },
  );
  hostGoesOn();
});

Deno.test("hostile: re-entry without caller.call is impossible, with it bounded, and deep recursion is a trap", () => {
  const recursion = {
    provides: ["deep ->"],
    wat: `(module (func $deep (export "${NS}#deep") (call $deep)))`,
  };
  const guest = `(module (import "${NS}" "deep" (func $d)) (func (export "deep") (call $d)))`;
  withPlugins([recursion], guest, ({ call }) => {
    assert.throws(() => call("deep"), (e) =>
      e instanceof TrapError && e.name === "ExhaustionError" &&
      e.message === `call stack exhausted in plugin ${PLUGIN}`);
  });
  // Two plugins cannot bind each other.
  const ns = (n: number) => `${CONTRACT}/${n}`;
  const half = (n: number, other: number) => ({
    id: `t.example/r${n}`,
    contract: ns(n),
    provides: ["go ->"],
    consumes: [{ id: ns(other), major: 1, mode: "required" as const, functions: [contractFunction("go ->")] }],
    bindings: { [`${ns(other)}@1`]: [`t.example/r${other}`] },
    wat: `(module (import "${ns(other)}@1" "go" (func $go)) (func (export "${ns(n)}@1#go") (call $go)))`,
  });
  assert.throws(() => hostOf([half(1, 2), half(2, 1)], "."), /cycle/);
  // A function of the guest cannot be smuggled in as a reference.
  const smuggler = {
    provides: ["take funcref->"],
    wat: `(module (func (export "${NS}#take") (param funcref)))`,
  };
  const giver = `(module (import "${NS}" "take" (func (param funcref))))`;
  assert.equal(findingOf(() => withPlugins([smuggler], giver, () => {})), "link.type");
  hostGoesOn();
});

Deno.test("hostile: start and init functions that trap, throw, or use missing exports", () => {
  for (
    const [wat, message] of [
      [`(module (func $s unreachable) (start $s))`, "unreachable"],
      [`(module (memory 1) (data (i32.const 65536) "x"))`, "out of bounds memory access"],
      [`(module (tag $t) (func (export "waft:self@1#init") (throw $t)))`, "uncaught exception"],
      [`(module (func $f (export "waft:self@1#init") (call $f)))`, "call stack exhausted"],
      [
        `(module (import "waft:self@1" "abort" (func $a (param i32 i32)))
          (func $s (call $a (i32.const -1) (i32.const -1))) (start $s))`,
        "abort: (its message is not in its memory)",
      ],
      [
        `(module (import "waft:self@1" "config-read" (func $c (param i32 i32) (result i32))) (memory 1)
          (func $s (if (i32.eq (call $c (i32.const 0) (i32.const 1)) (i32.const -2)) (then unreachable))) (start $s))`,
        "unreachable",
      ],
    ] as const
  ) {
    assert.throws(() => withPlugins([{ wat }], "(module)", () => {}), { message: `${message} in plugin ${PLUGIN}` });
  }
  hostGoesOn();
});

Deno.test({
  name: "hostile: a directory that turns into a link while a plugin writes leads nowhere else",
  ignore: LACKS_LINKS,
}, () => {
  const outside = mkdtempSync(join(tmpdir(), "waft-outside-"));
  writeFileSync(join(outside, "secret"), "secret");
  try {
    withPlugins(
      [{
        provides: ["write ->i32"],
        requests: { "fs.write": { roots: ["/store"] } },
        wat: `(module (import "waft:fs@1" "write" (func $w (param i32 i32 i64 i32 i32) (result i32)))
          (memory 1) (data (i32.const 0) "/store/sub/secret")
          (func (export "${NS}#write") (result i32)
            (call $w (i32.const 0) (i32.const 17) (i64.const 0) (i32.const 0) (i32.const 6))))`,
      }],
      `(module (import "${NS}" "write" (func $w (result i32))) (export "write" (func $w)))`,
      ({ call, root }) => {
        mkdirSync(join(root, "store", "sub"), { recursive: true });
        assert.equal(call("write"), 6);
        rmSync(join(root, "store", "sub"), { recursive: true });
        symlinkSync(outside, join(root, "store", "sub"));
        assert.equal(call("write"), -3);
      },
    );
    assert.equal(readFileSync(join(outside, "secret"), "utf8"), "secret");
  } finally {
    rmSync(outside, { recursive: true, force: true });
  }
});

Deno.test("hostile: endless loops end at the deadline or with the fuel, wherever the plugin runs", () => {
  const endless = (name: string) => `(func (export "${name}") (loop $l (br $l)))`;
  const guest = `(module (import "${NS}" "spin" (func $s)) (func (export "spin") (call $s))
    (func (export "fine") (result i32) (i32.const 1)))`;
  const plugin = { provides: ["spin ->"], wat: `(module ${endless(`${NS}#spin`)})` };
  for (const [context, message] of [[{ deadline: 20 }, "interrupted"], [{ fuel: 100_000 }, "out of fuel"]] as const) {
    withPlugins([plugin], guest, ({ graph }) => {
      assert.equal(graph.call({ ...context }, "fine"), 1);
      assert.throws(() => graph.call({ ...context }, "spin"), { message: `${message} in plugin ${PLUGIN}` });
      assert.throws(() => graph.call({}, "fine"), /graph is closed/);
    });
    const provided = `(func (export "${NS}#spin"))`;
    for (
      const wat of [
        `(module ${provided} ${endless("waft:self@1#init")})`,
        `(module ${provided} (func $s (loop $l (br $l))) (start $s))`,
      ]
    ) {
      const start = () => withPlugins([{ ...plugin, wat }], guest, () => {}, { guest: { context: { ...context } } });
      assert.throws(start, { message: `${message} in plugin ${PLUGIN}` });
    }
  }
  hostGoesOn();
});

Deno.test("hostile: endless allocation of structures, arrays and exceptions ends in a trap", () => {
  const grab = (body: string, more = "") => ({
    provides: ["grab ->"],
    wat:
      `(module (type $bytes (array (mut i8))) (rec (type $list (struct (field (ref null $list)) (field (ref $bytes)))))
      (global $kept (mut (ref null $list)) (ref.null $list)) ${more}
      (func (export "${NS}#grab") (loop $l ${body} (br $l))))`,
  });
  const guest = `(module (import "${NS}" "grab" (func $g)) (type $t (struct (field i32)))
    (func (export "grab") (call $g))
    (func (export "make") (result i32) (struct.get $t 0 (struct.new $t (i32.const 5)))))`;
  for (
    const plugin of [
      grab(`(global.set $kept (struct.new $list (global.get $kept) (array.new_default $bytes (i32.const 4194304))))`),
      grab(`(drop (array.new_default $bytes (i32.const -1)))`),
      grab(
        `(block $caught (result exnref)
          (try_table (catch_all_ref $caught) (throw $big (array.new_default $bytes (i32.const 1048576)))) (unreachable))
        (drop) (global.set $kept (struct.new $list (global.get $kept) (array.new_default $bytes (i32.const 4194304))))`,
        `(tag $big (param (ref $bytes)))`,
      ),
    ]
  ) {
    withPlugins([plugin], guest, ({ call, graph }) => {
      assert.throws(
        () => call("grab"),
        (error) =>
          error instanceof TrapError && /in plugin t\.example\/p$/.test(error.message) &&
          /allocat|heap|memory|array|exhaust/i.test(error.message),
      );
      assert.throws(() => graph.call({}, "make"), /graph is closed/);
    });
    // Its memory is free again: another guest of the same process allocates.
    withPlugins([{ provides: ["grab ->"], wat: `(module (func (export "${NS}#grab")))` }], guest, ({ call }) => {
      assert.equal(call("make"), 5);
    });
  }
  hostGoesOn();
});

Deno.test("hostile: re-entry through caller.call ends in exhaustion, and never while the graph fails", () => {
  withPlugins(
    [{
      provides: ["bounce ->i32"],
      requests: { "caller.call": { exports: ["bounce", "boom"] } },
      wat: `(module (import "waft:caller@1" "call" (func $call (param i32 i32 i32 i32 i32 i32) (result i32)))
        (memory 1) (data (i32.const 0) "bounceboomother")
        (func (export "${NS}#bounce") (result i32)
          ;; An export that was not granted, then one that was.
          (if (i32.ne (call $call (i32.const 10) (i32.const 5) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
            (i32.const 3)) (then unreachable))
          (drop (call $call (i32.const 0) (i32.const 6) (i32.const 64) (i32.const 0) (i32.const 128) (i32.const 1)))
          (i32.const 1)))`,
    }],
    `(module (import "${NS}" "bounce" (func $b (result i32))) (func (export "bounce") (result i32) (call $b))
      (func (export "other")))`,
    ({ call }) => {
      assert.throws(() => call("bounce"), (error) => error instanceof TrapError && /exhausted/.test(error.message));
      assert.throws(() => call("other"), /graph is closed/);
    },
  );
  hostGoesOn();
});
