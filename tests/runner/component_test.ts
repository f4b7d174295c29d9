/**
 * Components in a runner: values of all types, resources of both sides, streams, WASI, limits, and handles that are
 * dropped, forged or of other instances.
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { InvalidError, LinkError, TrapError } from "../../engine/base/errors.ts";
import { readFile } from "../../engine/host/files.ts";
import { ComponentError } from "../../component/mod.ts";
import { Runner, RunnerError, RunnerResource } from "../../component/runner/mod.ts";
import { until } from "../support/http_requests.ts";

const fixture = (name: string) =>
  new TextDecoder().decode(readFile(fileURLToPath(new URL(`../component/fixtures/${name}`, import.meta.url))));

/** Runs `test` with a runner, which is closed afterwards. */
async function withRunner(test: (runner: Runner) => Promise<void>, options: Parameters<typeof Runner.start>[0] = {}) {
  const runner = await Runner.start(options);
  try {
    await test(runner);
  } finally {
    await runner.close();
  }
}

/** A component with a resource of its own and one of the host, which it keeps in a global. */
const COMPONENT = `(component
  (import "test:host/files@1.0.0" (instance $host
    (export "file" (type $file (sub resource)))
    (export "[constructor]file" (func (param "size" u32) (result (own $file))))
    (export "[method]file.size" (func (param "self" (borrow $file)) (result u32)))
    (export "[static]file.merge" (func (param "a" (own $file)) (param "b" (own $file)) (result (own $file))))
    (export "check" (func (param "n" u32) (result (result u32 (error u32)))))))
  (alias export $host "file" (type $file))
  (type $counter' (resource (rep i32)))
  (export $counter "counter" (type $counter'))
  (core func $new (canon resource.new $counter'))
  (core func $open (canon lower (func $host "[constructor]file")))
  (core func $size (canon lower (func $host "[method]file.size")))
  (core func $merge (canon lower (func $host "[static]file.merge")))
  (core func $drop (canon resource.drop $file))
  (core module $libc (memory (export "m") 1))
  (core instance $libc (instantiate $libc))
  (core func $check (canon lower (func $host "check") (memory (core memory $libc "m"))))
  (core module $m
    (import "m" "m" (memory 1))
    (import "" "new" (func $new (param i32) (result i32)))
    (import "" "open" (func $open (param i32) (result i32)))
    (import "" "size" (func $size (param i32) (result i32)))
    (import "" "merge" (func $merge (param i32 i32) (result i32)))
    (import "" "drop" (func $drop (param i32)))
    (import "" "check" (func $check (param i32 i32)))
    (global $count (mut i32) (i32.const 0))
    (func (export "make") (param i32) (result i32) (call $new (local.get 0)))
    (func (export "value") (param i32) (result i32) (local.get 0))
    (func (export "next") (result i32)
      (global.set $count (i32.add (global.get $count) (i32.const 1))) (global.get $count))
    (func (export "open") (param i32) (result i32) (call $open (local.get 0)))
    (func (export "size") (param i32) (result i32) (local $size i32)
      (local.set $size (call $size (local.get 0))) (call $drop (local.get 0)) (local.get $size))
    (func (export "merged") (param i32 i32) (result i32) (local $file i32)
      (local.set $file (call $merge (call $open (local.get 0)) (call $open (local.get 1))))
      (call $size (local.get $file)))
    (func (export "keep") (param i32))
    (func (export "check") (param i32) (result i32)
      (call $check (local.get 0) (i32.const 16)) (i32.const 16))
    (func (export "spin") (loop (br 0)))
    (func (export "trap") unreachable))
  (core instance $i (instantiate $m (with "m" (instance $libc)) (with "" (instance
    (export "new" (func $new)) (export "open" (func $open)) (export "size" (func $size))
    (export "merge" (func $merge)) (export "drop" (func $drop)) (export "check" (func $check))))))
  (func (export "[constructor]counter") (param "n" u32) (result (own $counter)) (canon lift (core func $i "make")))
  (func (export "[method]counter.value") (param "self" (borrow $counter)) (result u32)
    (canon lift (core func $i "value")))
  (func (export "keep") (param "counter" (own $counter)) (canon lift (core func $i "keep")))
  (func (export "next") (result u32) (canon lift (core func $i "next")))
  (func (export "open") (param "size" u32) (result (own $file)) (canon lift (core func $i "open")))
  (func (export "size") (param "file" (borrow $file)) (result u32) (canon lift (core func $i "size")))
  (func (export "merged") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $i "merged")))
  (func (export "check") (param "n" u32) (result (result u32 (error u32)))
    (canon lift (core func $i "check") (memory (core memory $libc "m"))))
  (func (export "spin") (canon lift (core func $i "spin")))
  (func (export "trap") (canon lift (core func $i "trap"))))`;

/** A class of the program, and those of its objects that are not disposed of. */
function hostFiles() {
  const open = new Set<object>();
  const failure = new Error("the program's own");
  class File {
    readonly bytes: number;

    constructor(bytes: number) {
      this.bytes = bytes;
      open.add(this);
    }

    size(): number {
      return this.bytes;
    }

    static merge(a: File, b: File): File {
      a[Symbol.dispose]();
      b[Symbol.dispose]();
      return new File(a.bytes + b.bytes);
    }

    [Symbol.dispose](): void {
      open.delete(this);
    }
  }
  const check = async (n: number) => {
    if (n > 100) throw failure;
    if (n > 10) throw new ComponentError(n);
    return await Promise.resolve(n * 2);
  };
  return { open, failure, File, imports: { "test:host/files@1.2.0": { File, check } } };
}

Deno.test("a runner compiles, instantiates and calls components", async () => {
  await withRunner(async (runner) => {
    await assert.rejects(runner.compileComponent('(component (export "a" (func 0)))'), InvalidError);
    const component = await runner.compileComponent(COMPONENT);
    assert.deepEqual(component.imports.slice(0, 2), [
      "test:host/files@1.0.0#[constructor]file",
      "test:host/files@1.0.0#[method]file.size",
    ]);
    await assert.rejects(component.instantiate(), (error) => {
      assert.ok(error instanceof LinkError);
      return /\[static\]file\.merge: func/.test(error.message);
    });
    const { imports, failure } = hostFiles();
    const instance = await component.instantiate({ resettable: true }, imports);
    assert.deepEqual([instance.has("next"), instance.has("last")], [true, false]);
    await assert.rejects(instance.call({}, "last"), /There is no exported function "last"/);
    assert.deepEqual([await instance.call({}, "next"), await instance.call({}, "next")], [1, 2]);
    assert.equal(await instance.call({}, "check", 4), 8);
    const refused = await instance.call({}, "check", 11).catch((error) => error);
    assert.ok(refused instanceof ComponentError);
    assert.equal(refused.payload, 11);
    await assert.rejects(instance.call({}, "check", 101), (error) => error === failure);
    await instance.reset();
    assert.equal(await instance.call({}, "next"), 1);
    await instance.close();
    await assert.rejects(instance.call({}, "next"), /the instance has been closed/i);
    await component.close();
    await assert.rejects(component.instantiate({}, imports), /the component has been closed/i);
    // Modules of WebAssembly run beside components.
    const module = await runner.compile(`(module (func (export "seven") (result i32) (i32.const 7)))`);
    assert.equal(await (await module.instantiate()).call({}, "seven"), 7);
  });
});

Deno.test("limits end calls of a component in a runner, and a reset makes it usable", async () => {
  await withRunner(async (runner) => {
    const component = await runner.compileComponent(COMPONENT);
    const instance = await component.instantiate({ resettable: true }, hostFiles().imports);
    const ended = await instance.call({ deadline: 30 }, "spin").catch((error) => error);
    assert.ok(ended instanceof TrapError, String(ended));
    assert.deepEqual([ended.code, ended.detail], ["interrupted", "the deadline of 30 ms"]);
    await instance.reset();
    const context = { fuel: 1000 };
    assert.equal(await instance.call(context, "next"), 1);
    assert.ok(context.fuel < 1000 && context.fuel > 900, String(context.fuel));
    const out = await instance.call(context, "spin").catch((error) => error);
    assert.ok(out instanceof TrapError, String(out));
    assert.deepEqual([out.code, context.fuel], ["out-of-fuel", 0]);
    await instance.reset();
    await assert.rejects(instance.call({}, "trap"), TrapError);
    await instance.reset();
    assert.equal(await instance.call({}, "next"), 1);
  }, { engine: { fuel: true } });
});

Deno.test("resources cross as handles, and are dropped", async () => {
  await withRunner(async (runner) => {
    const component = await runner.compileComponent(COMPONENT);
    const { imports, open, File } = hostFiles();
    const instance = await component.instantiate({ resettable: true }, imports);
    const other = await component.instantiate({}, imports);
    // Of the component: owned by the program until it is passed on.
    const counter = await instance.call<RunnerResource>({}, "[constructor]counter", 5);
    assert.ok(counter instanceof RunnerResource);
    assert.equal(await instance.call({}, "[method]counter.value", counter), 5);
    await assert.rejects(other.call({}, "[method]counter.value", counter), /Expected a resource of this instance/);
    await assert.rejects(instance.call({}, "[method]counter.value", {}), /Expected a resource of this instance/);
    await instance.call({}, "keep", counter);
    await assert.rejects(instance.call({}, "keep", counter), /passed on, dropped or reset/);
    const second = await instance.call<RunnerResource>({}, "[constructor]counter", 6);
    await second.drop();
    await second.drop();
    await assert.rejects(instance.call({}, "[method]counter.value", second), /passed on, dropped or reset/);
    // Of the program: the very object comes back, and those that the component drops are disposed of.
    const file = await instance.call<InstanceType<typeof File>>({}, "open", 9);
    assert.ok(file instanceof File);
    assert.equal(await instance.call({}, "size", file), 9);
    assert.equal(await instance.call({}, "size", file), 9, "it was only lent");
    assert.deepEqual([...open], [file]);
    assert.equal(await instance.call({}, "merged", 3, 4), 7);
    assert.equal(open.size, 2, "the component keeps the merged file");
    const third = await instance.call<RunnerResource>({}, "[constructor]counter", 7);
    await instance.reset();
    assert.deepEqual([...open], [file], "a reset disposes of it");
    await assert.rejects(instance.call({}, "[method]counter.value", third), /passed on, dropped or reset/);
    await third.drop();
    await instance.call({}, "merged", 1, 2);
    await instance.close();
    assert.deepEqual([...open], [file], "the end of an instance disposes of it");
  });
});

Deno.test("host functions call the runner while a component waits", async () => {
  await withRunner(async (runner) => {
    const component = await runner.compileComponent(COMPONENT);
    const inner = await component.instantiate({}, hostFiles().imports);
    const imports = {
      "test:host/files": {
        ...hostFiles().imports["test:host/files@1.2.0"],
        check: (n: number) => inner.call({}, "check", n),
      },
    };
    const outer = await component.instantiate({}, imports);
    assert.equal(await outer.call({}, "check", 5), 10);
    const refused = await outer.call({}, "check", 50).catch((error) => error);
    assert.ok(refused instanceof ComponentError);
    assert.equal(refused.payload, 50);
  });
});

/** Types, and values that pass through a component and its host function. */
const VALUES: readonly (readonly [type: string, ...values: unknown[]])[] = [
  ["bool", true, false],
  ["s8", -128],
  ["u32", 0xffff_ffff],
  ["s64", -(2n ** 63n)],
  ["u64", 2n ** 64n - 1n],
  ["f32", 0.5, NaN],
  ["f64", -0, Infinity],
  ["char", "🦋"],
  ["string", "", "a\0ü🦋"],
  ["(list u8)", Uint8Array.of(1, 255), new Uint8Array(1 << 20)],
  ["(list s64)", BigInt64Array.of(-1n)],
  ["(list f32)", Float32Array.of(1.5)],
  ["(list string)", ["a", "b"], []],
  ["(list (list u16))", [Uint16Array.of(1), new Uint16Array(0)]],
  ["(tuple u8 string)", [1, "x"]],
  ['(record (field "a-b" u8) (field "c" (option string)))', { aB: 1, c: "x" }, { aB: 2, c: undefined }],
  ['(flags "x-y" "z")', { xY: true, z: false }],
  ['(enum "one" "two")', "two"],
  ['(variant (case "a" u8) (case "b"))', { tag: "a", val: 3 }, { tag: "b" }],
  ["(option u8)", 5, undefined],
  ["(option (option u8))", { tag: "some", val: undefined }, { tag: "some", val: 7 }, { tag: "none" }],
  ["(option (list (result string)))", [{ tag: "ok", val: "x" }, { tag: "err", val: undefined }], undefined],
];

Deno.test("values of all types cross in both directions", async () => {
  const definitions = VALUES.map(([type], k) => {
    const name = `f${"abcdefghijklmnopqrstuvwxyz"[k]}`;
    return `(type $t${k} ${type}) (import "t-${name}" (type $i${k} (eq $t${k})))
      (import "${name}" (func $f${k} (param "x" $i${k}) (result $i${k}))) (export "out-${name}" (func $f${k}))`;
  });
  await withRunner(async (runner) => {
    const component = await runner.compileComponent(`(component ${definitions.join("\n")})`);
    const seen: unknown[] = [];
    const same = (value: unknown) => {
      seen.push(value);
      return value;
    };
    const imports = Object.fromEntries(component.imports.map((name) => [name, same]));
    const instance = await component.instantiate({}, imports);
    for (const [k, [, ...values]] of VALUES.entries()) {
      for (const value of values) {
        assert.deepEqual(await instance.call({}, component.exports[k], value), value);
        assert.deepEqual(seen.pop(), value);
      }
    }
    await assert.rejects(instance.call({}, "out-fb", () => 1), /cannot leave its process/);
  });
});

async function all<T>(stream: ReadableStream<T>): Promise<T[]> {
  const items: T[] = [];
  for (const reader = stream.getReader();;) {
    const { done, value } = await reader.read();
    if (done) return items;
    items.push(value);
  }
}

Deno.test("streams and futures cross in both directions, part by part", async () => {
  await withRunner(async (runner) => {
    const component = await runner.compileComponent(fixture("streams.wat"));
    const instance = await component.instantiate({ resettable: true }, { ask: async () => await Promise.resolve(21) });
    let cancelled = false;
    const endless = () =>
      new ReadableStream({
        pull: (controller) => controller.enqueue(Uint8Array.of(9, 9)),
        cancel: () => void (cancelled = true),
      });
    assert.equal(await instance.call({}, "sum", new Blob([Uint8Array.of(1, 2, 3), Uint8Array.of(4)]).stream()), 10);
    assert.equal(await instance.call({}, "sum", Uint8Array.of(250, 5)), 255);
    async function* later() {
      yield Uint8Array.of(1, 2);
      // A request that runs while the component waits for the stream.
      yield await instance.call<number>({}, "written") + 3;
    }
    assert.equal(await instance.call({}, "sum", later()), 6);
    assert.equal(await instance.call({}, "first", endless()), 9);
    await until(() => cancelled);
    assert.deepEqual(await all(await instance.call<ReadableStream<number>>({}, "count", 5)), [0, 1, 2, 3, 4]);
    assert.deepEqual(await all(await instance.call<ReadableStream<string>>({}, "words")), ["first", "second"]);
    const reader = (await instance.call<ReadableStream<number>>({}, "count", 1000)).getReader();
    assert.deepEqual(await reader.read(), { done: false, value: 0 });
    await reader.cancel();
    assert.equal(await instance.call({}, "length", Promise.resolve("seven!!")), 7);
    assert.equal(await instance.call({}, "twice"), 42);
    await assert.rejects(instance.call({}, "sum", 5), /Expected a ReadableStream or an iterable, not 5/);
    const failing = new ReadableStream({ pull: () => Promise.reject(new Error("the source is broken")) });
    await assert.rejects(instance.call({}, "sum", failing), /the source is broken/);
  });
});

Deno.test("components run with WASI in a runner: commands, and instances with output", async () => {
  await withRunner(async (runner) => {
    const hello = await runner.compileComponent(fixture("hello.wat"));
    for (const stdin of ["", "text"]) {
      const { status, stdout } = await hello.run({ stdin, limits: { deadline: 60_000 } });
      assert.equal(status, 0);
      assert.match(stdout, /hello/i);
    }
    const instance = await hello.instantiate({ wasi: { args: ["a"], files: { "a.txt": "text" } } });
    await instance.call({}, hello.exports.find((name) => name.startsWith("wasi:cli/run"))!);
    const { stdout, files } = await instance.output();
    assert.equal(stdout, "a", "hello.wat writes its argument");
    assert.deepEqual(Object.keys(files), ["a.txt"]);
    await instance.close();
    const echo = await runner.compileComponent(fixture("async_command.wat"));
    const input = "0123456789".repeat(20_000);
    const { status, stdout: copy, stderr } = await echo.run({ args: ["echo"], stdin: input });
    assert.deepEqual([status, copy, stderr], [0, input, "done\n"]);
    await assert.rejects(hello.instantiate({ wasi: { limits: {} } as never }), /cannot have limits/);
  });
});

Deno.test("a component ends with its runner, and its requests with it", async () => {
  const runner = await Runner.start({ engine: { interruptible: false } });
  const component = await runner.compileComponent(COMPONENT);
  const { imports, open } = hostFiles();
  const instance = await component.instantiate({}, imports);
  await instance.call({}, "merged", 1, 2);
  const counter = await instance.call<RunnerResource>({}, "[constructor]counter", 5);
  const spinning = assert.rejects(instance.call({ deadline: 10 }, "spin"), /did not answer within 1010 ms/);
  await spinning;
  await assert.rejects(counter.drop(), RunnerError);
  await assert.rejects(instance.call({}, "next"), RunnerError);
  assert.equal(open.size, 1);
  await runner.close();
});
