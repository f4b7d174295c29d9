/**
 * Components of core modules, worlds and adapters (`waft component new`), and of several components (`waft compose`):
 * they run, and faults of the parts are named.
 */
import assert from "node:assert/strict";
import { NewEngine } from "../../engine/mod.ts";
import { decodeComponent } from "../../component/binary/decode.ts";
import { composeComponents } from "../../component/build/compose.ts";
import { newComponent } from "../../component/build/new_component.ts";
import { worldTypeText } from "../../component/build/type_text.ts";
import { compileBinary } from "../../component/component.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { validateComponent } from "../../component/validate/validate_component.ts";
import type { WitWorld } from "../../component/wit/document.ts";
import { witOfComponent } from "../../component/wit/from_component.ts";
import { parseWit } from "../../component/wit/parse.ts";
import { describeWorld } from "../../component/wit/print.ts";
import { resolveWit } from "../../component/wit/resolve.ts";
import { loadProposal, WASI_RELEASES } from "../support/wasi_wit.ts";

const engine = NewEngine({ tier: "baseline" });

function world(text: string, name = "w"): WitWorld {
  return resolveWit([parseWit({ file: "w.wit", text: `package t:t@1.0.0; ${text}` })]).root.worlds.get(name)!;
}

/** The binary form of a core module. */
function core(text: string): Uint8Array {
  return engine.parse(text).bytes;
}

/** An allocator that only advances. */
const REALLOC = `(global $free (mut i32) (i32.const 4096))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.set $free (i32.add (local.get $at) (local.get 3)))
    (local.get $at))`;

/** The exports of an instance of a component. */
function exportsOf<T extends object>(bytes: Uint8Array, imports: Record<string, unknown> = {}): T {
  return compileBinary(engine, bytes).instantiate<T>({}, imports).exports;
}

/** The names of the imports of a component. */
function importsOf(bytes: Uint8Array): string[] {
  return [...validateComponent(decodeComponent(bytes)).type.imports.keys()];
}

const ECHO_WORLD =
  `world w { import host: func(x: string) -> string; import unused: func(); export echo: func(x: string) -> string; }`;
const ECHO_MODULE = `(module
  (import "$root" "host" (func $host (param i32 i32 i32)))
  (memory (export "memory") 1) ${REALLOC}
  (func (export "echo") (param i32 i32) (result i32)
    (call $host (local.get 0) (local.get 1) (i32.const 64)) (i32.const 64)))`;

Deno.test("component new: strings through an import, which uses the memory of the module", () => {
  const component = newComponent(core(ECHO_MODULE), { world: world(ECHO_WORLD) });
  const { echo } = exportsOf<{ echo(x: string): string }>(component, { host: (x: string) => `${x}, ${x}` });
  assert.equal(echo("naïve"), "naïve, naïve");
  assert.deepEqual(importsOf(component), ["host"]);
});

Deno.test("component new: the world is in a custom section, and so is its string encoding", () => {
  // Twice the same string in UTF-16: the length is in code units.
  const section = decodeComponent(
    componentToBinary(worldTypeText(world(`world w { export twice: func(x: string) -> string; }`))),
  );
  const encoding = [...customSection("wit-component-encoding", Uint8Array.of(4, 1))];
  const embedded = Uint8Array.of(...section.bytes.subarray(0, 8), ...encoding, ...section.bytes.subarray(8));
  const module = core(`(module (memory (export "memory") 1) ${REALLOC}
    (func (export "twice") (param i32 i32) (result i32) (local $bytes i32)
      (local.set $bytes (i32.shl (local.get 1) (i32.const 1)))
      (memory.copy (i32.const 1024) (local.get 0) (local.get $bytes))
      (memory.copy (i32.add (i32.const 1024) (local.get $bytes)) (local.get 0) (local.get $bytes))
      (i32.store (i32.const 64) (i32.const 1024))
      (i32.store (i32.const 68) (i32.shl (local.get 1) (i32.const 1)))
      (i32.const 64)))`);
  const component = newComponent(Uint8Array.of(...module, ...customSection("component-type:w", embedded)));
  assert.equal(exportsOf<{ twice(x: string): string }>(component).twice("ж🙂"), "ж🙂ж🙂");
  assert.ok(!new TextDecoder().decode(component).includes("component-type"));
});

function leb(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...leb(value >> 7)];
}

function customSection(name: string, bytes: Uint8Array): Uint8Array {
  const content = [...leb(name.length), ...new TextEncoder().encode(name), ...bytes];
  return Uint8Array.of(0, ...leb(content.length), ...content);
}

const SHELF_WORLD = `
  interface shelf { resource book { constructor(pages: u32); pages: func() -> u32; merge: static func(a: book, b: borrow<book>) -> book; }
    record pair { first: u32, second: u32 } both: func(a: borrow<book>, b: borrow<book>) -> pair; }
  interface desk { use shelf.{book, pair}; read: func(b: book) -> result<pair, u32>; }
  world w { export shelf; export desk; }`;

Deno.test("component new: exported resources with destructors, and types that exported interfaces share", () => {
  const component = newComponent(
    core(`(module
      (import "[export]t:t/shelf@1.0.0" "[resource-new]book" (func $new (param i32) (result i32)))
      (import "[export]t:t/shelf@1.0.0" "[resource-rep]book" (func $rep (param i32) (result i32)))
      (import "[export]t:t/shelf@1.0.0" "[resource-drop]book" (func $drop (param i32)))
      (memory (export "memory") 1) (global $dropped (mut i32) (i32.const 0))
      (func (export "t:t/shelf@1.0.0#[constructor]book") (param i32) (result i32) (call $new (local.get 0)))
      (func (export "t:t/shelf@1.0.0#[method]book.pages") (param i32) (result i32) (local.get 0))
      (func (export "t:t/shelf@1.0.0#[static]book.merge") (param i32 i32) (result i32) (local $pages i32)
        (local.set $pages (i32.add (call $rep (local.get 0)) (local.get 1)))
        (call $drop (local.get 0))
        (call $new (local.get $pages)))
      (func (export "t:t/shelf@1.0.0#[dtor]book") (param i32)
        (global.set $dropped (i32.add (global.get $dropped) (local.get 0))))
      (func $pair (param i32 i32) (result i32)
        (i32.store (i32.const 64) (local.get 0)) (i32.store (i32.const 68) (local.get 1)) (i32.const 64))
      (func (export "t:t/shelf@1.0.0#both") (param i32 i32) (result i32) (call $pair (local.get 0) (local.get 1)))
      (func (export "t:t/desk@1.0.0#read") (param i32) (result i32) (local $pages i32)
        (local.set $pages (call $rep (local.get 0)))
        (call $drop (local.get 0))
        (i32.store8 (i32.const 32) (i32.const 0))
        (i32.store (i32.const 36) (local.get $pages)) (i32.store (i32.const 40) (global.get $dropped)) (i32.const 32)))`),
    { world: world(SHELF_WORLD) },
  );
  interface Book {
    pages(): number;
  }
  const { shelf, desk } = exportsOf<{
    shelf: { Book: { new (pages: number): Book; merge(a: Book, b: Book): Book }; both(a: Book, b: Book): object };
    desk: { read(b: Book): { first: number; second: number } };
  }>(component);
  const merged = shelf.Book.merge(new shelf.Book(3), new shelf.Book(4));
  assert.equal(merged.pages(), 7);
  assert.deepEqual(shelf.both(new shelf.Book(1), new shelf.Book(2)), { first: 1, second: 2 });
  // The destructors of the book of 3 pages, and of the merged one, have run.
  assert.deepEqual(desk.read(merged), { first: 7, second: 10 });
  const [root] = witOfComponent(validateComponent(decodeComponent(component))).root.worlds.values();
  assert.match(JSON.stringify(describeWorld(root)), /"name":"book","type":"t:t\/shelf@1\.0\.0\.book"/);
});

Deno.test("component new: async functions with a callback, streams, and task.return", async () => {
  const component = newComponent(
    core(`(module
      (import "$root" "[async-lower]later" (func $later (param i32 i32) (result i32)))
      (import "$root" "[waitable-set-new]" (func $set (result i32)))
      (import "$root" "[waitable-join]" (func $join (param i32 i32)))
      (import "$root" "[subtask-drop]" (func $drop (param i32)))
      (import "$root" "[context-set-0]" (func $keep (param i32)))
      (import "$root" "[context-get-0]" (func $kept (result i32)))
      (import "[export]$root" "[task-return]run" (func $return (param i32)))
      (memory (export "memory") 1)
      (func (export "[async-lift]run") (param i32) (result i32) (local $status i32) (local $waitables i32)
        (call $keep (local.get 0))
        (local.set $status (call $later (local.get 0) (i32.const 64)))
        (if (i32.eq (i32.and (local.get $status) (i32.const 15)) (i32.const 2))
          (then (call $return (i32.load (i32.const 64))) (return (i32.const 0))))
        (local.set $waitables (call $set))
        (call $join (i32.shr_u (local.get $status) (i32.const 4)) (local.get $waitables))
        (i32.or (i32.const 2) (i32.shl (local.get $waitables) (i32.const 4))))
      (func (export "[callback][async-lift]run") (param i32 i32 i32) (result i32)
        (call $drop (local.get 1))
        (call $return (i32.add (i32.load (i32.const 64)) (call $kept)))
        (i32.const 0)))`),
    { world: world(`world w { import later: async func(x: u32) -> u32; export run: async func(x: u32) -> u32; }`) },
  );
  const { run } = exportsOf<{ run(x: number): Promise<number> }>(component, {
    later: (x: number) => new Promise((resolve) => setTimeout(() => resolve(10 * x), 1)),
  });
  assert.equal(await run(4), 44);
});

/** An adapter for `old`: `put` writes its argument through `sink` of the world, on a stack of its own. */
const ADAPTER = `(module
  (import "env" "memory" (memory 0))
  (import "__main_module__" "cabi_realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
  (import "__main_module__" "start" (func $start))
  (import "t:t/out@1.0.3" "sink" (func $sink (param i32 i32)))
  (import "t:t/out@1.0.3" "never" (func $never))
  (global $__stack_pointer (mut i32) (i32.const 0))
  (global $allocation_state (mut i32) (i32.const 0))
  (func (export "put") (param i32)
    (i32.store8 (i32.sub (global.get $__stack_pointer) (i32.const 16)) (local.get 0))
    (call $sink (i32.sub (global.get $__stack_pointer) (i32.const 16)) (i32.const 1)))
  (func (export "idle") (call $never))
  (func (export "go") (result i32) (call $start) (global.get $__stack_pointer)))`;
const ADAPTER_WORLD =
  `interface out { sink: func(x: string); never: func(); } world w { import out; export go: func() -> u32; }`;

/** The adapter with its world in a custom section. */
function adapter(): Uint8Array {
  const section = componentToBinary(worldTypeText(world(ADAPTER_WORLD)));
  return Uint8Array.of(...core(ADAPTER), ...customSection("component-type:adapter", section));
}

for (const allocator of [REALLOC, ""]) {
  const label = allocator === "" ? "without" : "with";
  Deno.test(`component new: an adapter with a stack, for a module ${label} an allocator`, () => {
    const main = core(`(module (import "old" "put" (func $put (param i32))) (memory (export "memory") 2) ${allocator}
      (func (export "start") (call $put (i32.const 104)) (call $put (i32.const 105))))`);
    const component = newComponent(main, { adapters: [{ name: "old", bytes: adapter() }] });
    let text = "";
    const { go } = exportsOf<{ go(): number }>(component, { "t:t/out@1.0.0": { sink: (x: string) => text += x } });
    const stack = go();
    assert.equal(text, "hi");
    assert.equal(stack % 8, 0);
    assert.equal(go(), stack);
    // Interfaces that the module does not use are neither imported nor required.
    assert.match(new TextDecoder().decode(component), /sink/);
    const [root] = witOfComponent(validateComponent(decodeComponent(component))).root.worlds.values();
    assert.doesNotMatch(JSON.stringify(describeWorld(root)), /never/);
  });
}

const PLAIN = `(module (memory (export "memory") 1) (func (export "f") (param i32) (result i32) (local.get 0)))`;

/** Faults: module, world, the error. */
const FAULTS: readonly (readonly [string, string | undefined, RegExp])[] = [
  [PLAIN, undefined, /the module contains no world: give one with --wit/],
  [PLAIN, "world w { export g: func(); }", /does not export `g`, which the world w exports/],
  [
    PLAIN,
    "world w { export f: func(x: u64) -> u32; }",
    /the export `f` of the module has the type \[i32\] -> \[i32\]; the world needs \[i64\] -> \[i32\]/,
  ],
  [
    `(module (func (export "f") (param i32 i32)))`,
    "world w { export f: func(x: string); }",
    /exports no `cabi_realloc`/,
  ],
  [
    `(module (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable) (func (export "f") (param i32 i32)))`,
    "world w { export f: func(x: string); }",
    /does not export its memory as `memory`/,
  ],
  [
    `(module (import "$root" "h" (func (param i64))))`,
    "world w { import h: func(x: u32); }",
    /the import `\$root` `h` of the module has the type \[i64\] -> \[\]; the world needs \[i32\] -> \[\]/,
  ],
  [
    `(module (import "$root" "k" (func)))`,
    "world w { import h: func(x: u32); }",
    /nothing for the core import `\$root` `k`/,
  ],
  [
    `(module (import "t:t/x@1.0.0" "k" (func)))`,
    "world w { import h: func(x: u32); }",
    /has no import for the core import `t:t\/x@1\.0\.0`/,
  ],
  [`(module (import "wasi_snapshot_preview1" "fd_write" (func)))`, "world w {}", /give an adapter with --adapt/],
  [`(module (import "cm32p2|t:t/x@1" "k" (func)))`, "world w {}", /names that begin with cm32p2 are not supported/],
  [
    `(module (import "env" "memory" (memory 1)))`,
    "world w {}",
    /imports the memory `env` `memory`; a component can provide functions only/,
  ],
  [
    `(module (func (export "[async-lift]f") (result i32) unreachable))`,
    "world w { export f: async func(); }",
    /does not export `\[callback\]\[async-lift\]f`/,
  ],
];
for (const [module, text, message] of FAULTS) {
  Deno.test(`component new: ${message.source}`, () => {
    const options = text === undefined ? {} : { world: world(text) };
    assert.throws(() => newComponent(core(module), options), message);
  });
}

Deno.test("component new: an adapter with data of its own, or without an export, is refused", () => {
  const main = core(
    `(module (import "old" "put" (func (param i32))) (memory (export "memory") 1) (func (export "start")))`,
  );
  const make = (text: string) =>
    newComponent(main, { world: world("world w {}"), adapters: [{ name: "old", bytes: core(text) }] });
  assert.throws(
    () => make(`(module (memory 1) (data (i32.const 0) "x") (func (export "put") (param i32)))`),
    /the adapter old has a memory, data or elements/,
  );
  assert.throws(
    () => make(`(module (func (export "out") (param i32)))`),
    /the adapter old does not export `put`, which the module needs/,
  );
  assert.throws(
    () => make(`(module (func (export "put") (param i64)))`),
    /has the type \[i64\] -> \[\]; the module needs \[i32\] -> \[\]/,
  );
  const needs = `(module (import "__main_module__" "x" (func $x)) (func (export "put") (param i32) (call $x)))`;
  assert.throws(() => make(needs), /the module does not export `x`, which the adapter old needs/);
});

/** A component that exports `log` with a resource. */
function logComponent(version: string): Uint8Array {
  const wit =
    `package a:log@${version}; interface log { resource line { constructor(n: u32); } last: func(l: borrow<line>) -> u32; }
    interface clock { now: func() -> u32; } world w { import clock; export log; }`;
  const [found] = resolveWit([parseWit({ file: "l.wit", text: wit })]).root.worlds.values();
  return newComponent(
    core(`(module
      (import "[export]a:log/log@${version}" "[resource-new]line" (func $new (param i32) (result i32)))
      (import "a:log/clock@${version}" "now" (func $now (result i32)))
      (func (export "a:log/log@${version}#[constructor]line") (param i32) (result i32)
        (call $new (i32.add (local.get 0) (call $now))))
      (func (export "a:log/log@${version}#last") (param i32) (result i32) (local.get 0)))`),
    { world: found },
  );
}

/** A component that uses it, and the same clock. */
function userComponent(): Uint8Array {
  const wit =
    `package a:log@1.0.0; interface log { resource line { constructor(n: u32); } last: func(l: borrow<line>) -> u32; }
    interface clock { now: func() -> u32; } world w { import clock; import log; export run: func(n: u32) -> u32; }`;
  const [found] = resolveWit([parseWit({ file: "u.wit", text: wit })]).root.worlds.values();
  return newComponent(
    core(`(module
      (import "a:log/log@1.0.0" "[constructor]line" (func $new (param i32) (result i32)))
      (import "a:log/log@1.0.0" "[resource-drop]line" (func $drop (param i32)))
      (import "a:log/log@1.0.0" "last" (func $last (param i32) (result i32)))
      (import "a:log/clock@1.0.0" "now" (func $now (result i32)))
      (func (export "run") (param i32) (result i32) (local $line i32) (local $result i32)
        (local.set $line (call $new (local.get 0)))
        (local.set $result (i32.add (call $last (local.get $line)) (call $now)))
        (call $drop (local.get $line))
        (local.get $result)))`),
    { world: found },
  );
}

for (const version of ["1.0.0", "1.2.0"]) {
  Deno.test(`compose: imports are satisfied by version ${version}, the rest stays open`, () => {
    const plug = { name: "log.wasm", bytes: logComponent(version) };
    const composed = composeComponents({ name: "user.wasm", bytes: userComponent() }, [plug]);
    assert.deepEqual(new Set(importsOf(composed)), new Set(["a:log/clock@1.0.0", `a:log/clock@${version}`]));
    const { run } = exportsOf<{ run(n: number): number }>(composed, { "a:log/clock": { now: () => 100 } });
    assert.equal(run(5), 205);
  });
}

Deno.test("compose: a plug without use, and one whose types do not fit, are refused", () => {
  const socket = { name: "user.wasm", bytes: userComponent() };
  const other = { name: "user2.wasm", bytes: userComponent() };
  assert.throws(() => composeComponents(socket, [other]), /user2\.wasm satisfies no import: it exports run/);
  const wrong = componentToBinary(`(component
    (core module $m (func (export "f"))) (core instance $i (instantiate $m))
    (func $f (canon lift (core func $i "f"))) (instance $x (export "last" (func $f)))
    (export "a:log/log@1.0.0" (instance $x)))`);
  assert.throws(
    () => composeComponents(socket, [{ name: "wrong.wasm", bytes: wrong }]),
    /the parts do not form a valid component: .*line/,
  );
});

for (const release of WASI_RELEASES) {
  for (const proposal of ["cli", "http"]) {
    Deno.test(`the worlds of wasi:${proposal} ${release} survive as types of components`, () => {
      const { root } = loadProposal(release, proposal);
      for (const found of root.worlds.values()) {
        const bytes = componentToBinary(worldTypeText(found));
        const again = witOfComponent(validateComponent(decodeComponent(bytes))).root.worlds.get(found.name);
        assert.deepEqual(sorted(again!), sorted(found));
      }
    });
  }
}

/** A world as data, whose items are in the order of their names, and whose types are, too. */
function sorted(found: WitWorld): unknown {
  return JSON.parse(
    JSON.stringify(describeWorld(found)),
    (_, value: unknown) =>
      Array.isArray(value) && value.every((item) => typeof item === "object" && item !== null && "name" in item)
        ? [...value as { name: string }[]].sort((a, b) => a.name < b.name ? -1 : 1)
        : value,
  );
}
