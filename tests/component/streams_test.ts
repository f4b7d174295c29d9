/**
 * Streams, futures and asynchronous functions between JavaScript and a component: ReadableStreams and iterables in both
 * directions, backpressure, cancellation, errors of sources, and traps.
 */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "../../component/mod.ts";
import { until } from "../support/http_requests.ts";

const COMPONENT = `(component
  (type $bytes (stream u8))
  (type $numbers (stream u32))
  (type $words (stream string))
  (type $text (future string))
  (type $number (future u32))
  (import "ask" (func $ask async (param "question" string) (result u32)))
  (core module $memory
    (memory (export "m") 1)
    (global $free (mut i32) (i32.const 4096))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at)))
  (core instance $memory (instantiate $memory))
  (core module $main
    (import "m" "m" (memory 1))
    (import "i" "read-bytes" (func $read-bytes (param i32 i32 i32) (result i32)))
    (import "i" "drop-bytes" (func $drop-bytes (param i32)))
    (import "i" "new-numbers" (func $new-numbers (result i64)))
    (import "i" "write-numbers" (func $write-numbers (param i32 i32 i32) (result i32)))
    (import "i" "drop-numbers" (func $drop-numbers (param i32)))
    (import "i" "new-words" (func $new-words (result i64)))
    (import "i" "write-words" (func $write-words (param i32 i32 i32) (result i32)))
    (import "i" "drop-words" (func $drop-words (param i32)))
    (import "i" "read-text" (func $read-text (param i32 i32) (result i32)))
    (import "i" "new-number" (func $new-number (result i64)))
    (import "i" "write-number" (func $write-number (param i32 i32) (result i32)))
    (import "i" "return-u32" (func $return-u32 (param i32)))
    (import "i" "return-numbers" (func $return-numbers (param i32)))
    (import "i" "return-words" (func $return-words (param i32)))
    (import "i" "return-number" (func $return-number (param i32)))
    (import "i" "ask" (func $ask (param i32 i32) (result i32)))
    (data (i32.const 512) "firstsecond")
    (func (export "sum") (param $s i32) (local $result i32) (local $k i32) (local $sum i32)
      (loop $more
        (local.set $result (call $read-bytes (local.get $s) (i32.const 1024) (i32.const 3)))
        (local.set $k (i32.const 0))
        (block $none (loop $next
          (br_if $none (i32.ge_u (local.get $k) (i32.shr_u (local.get $result) (i32.const 4))))
          (local.set $sum (i32.add (local.get $sum) (i32.load8_u offset=1024 (local.get $k))))
          (local.set $k (i32.add (local.get $k) (i32.const 1)))
          (br $next)))
        (br_if $more (i32.eqz (i32.and (local.get $result) (i32.const 15)))))
      (call $drop-bytes (local.get $s))
      (call $return-u32 (local.get $sum)))
    (func (export "first") (param $s i32)
      (drop (call $read-bytes (local.get $s) (i32.const 1024) (i32.const 1)))
      (call $drop-bytes (local.get $s))
      (call $return-u32 (i32.load8_u (i32.const 1024))))
    (func (export "count") (param $n i32) (local $ends i64) (local $w i32) (local $k i32)
      (local.set $ends (call $new-numbers))
      (local.set $w (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))))
      (call $return-numbers (i32.wrap_i64 (local.get $ends)))
      (block $done (loop $next
        (br_if $done (i32.ge_u (local.get $k) (local.get $n)))
        (i32.store (i32.const 2048) (local.get $k))
        (br_if $done (i32.and (call $write-numbers (local.get $w) (i32.const 2048) (i32.const 1)) (i32.const 15)))
        (local.set $k (i32.add (local.get $k) (i32.const 1)))
        (br $next)))
      (i32.store (i32.const 256) (local.get $k))
      (call $drop-numbers (local.get $w)))
    (func (export "written") (result i32) (i32.load (i32.const 256)))
    (func (export "fail") (local $ends i64)
      (local.set $ends (call $new-numbers))
      (call $return-numbers (i32.wrap_i64 (local.get $ends)))
      (drop (call $write-numbers (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32)))
        (i32.const 2048) (i32.const 1)))
      unreachable)
    (func (export "words") (local $ends i64) (local $w i32)
      (local.set $ends (call $new-words))
      (local.set $w (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))))
      (call $return-words (i32.wrap_i64 (local.get $ends)))
      (i64.store (i32.const 3000) (i64.const 0x5_0000_0200))
      (i64.store (i32.const 3008) (i64.const 0x6_0000_0205))
      (drop (call $write-words (local.get $w) (i32.const 3000) (i32.const 2)))
      (call $drop-words (local.get $w)))
    (func (export "length") (param $f i32) (local $ends i64)
      (drop (call $read-text (local.get $f) (i32.const 3000)))
      (local.set $ends (call $new-number))
      (call $return-number (i32.wrap_i64 (local.get $ends)))
      (i32.store (i32.const 2048) (i32.load (i32.const 3004)))
      (drop (call $write-number (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))) (i32.const 2048))))
    (func (export "twice") (call $return-u32
      (i32.mul (i32.const 2) (call $ask (i32.const 512) (i32.const 5))))))
  (core func $read-bytes (canon stream.read $bytes (memory (core memory $memory "m"))))
  (core func $drop-bytes (canon stream.drop-readable $bytes))
  (core func $new-numbers (canon stream.new $numbers))
  (core func $write-numbers (canon stream.write $numbers (memory (core memory $memory "m"))))
  (core func $drop-numbers (canon stream.drop-writable $numbers))
  (core func $new-words (canon stream.new $words))
  (core func $write-words (canon stream.write $words (memory (core memory $memory "m"))))
  (core func $drop-words (canon stream.drop-writable $words))
  (core func $read-text (canon future.read $text (memory (core memory $memory "m"))
    (realloc (core func $memory "realloc"))))
  (core func $new-number (canon future.new $number))
  (core func $write-number (canon future.write $number (memory (core memory $memory "m"))))
  (core func $return-u32 (canon task.return (result u32)))
  (core func $return-numbers (canon task.return (result $numbers)))
  (core func $return-words (canon task.return (result $words)))
  (core func $return-number (canon task.return (result $number)))
  (core func $ask (canon lower (func $ask) (memory (core memory $memory "m"))))
  (core instance $main (instantiate $main
    (with "m" (instance $memory))
    (with "i" (instance
      (export "read-bytes" (func $read-bytes)) (export "drop-bytes" (func $drop-bytes))
      (export "new-numbers" (func $new-numbers)) (export "write-numbers" (func $write-numbers))
      (export "drop-numbers" (func $drop-numbers))
      (export "new-words" (func $new-words)) (export "write-words" (func $write-words))
      (export "drop-words" (func $drop-words))
      (export "read-text" (func $read-text))
      (export "new-number" (func $new-number)) (export "write-number" (func $write-number))
      (export "return-u32" (func $return-u32)) (export "return-numbers" (func $return-numbers))
      (export "return-words" (func $return-words)) (export "return-number" (func $return-number))
      (export "ask" (func $ask))))))
  (func (export "sum") async (param "s" $bytes) (result u32) (canon lift (core func $main "sum") async))
  (func (export "first") async (param "s" $bytes) (result u32) (canon lift (core func $main "first") async))
  (func (export "count") async (param "n" u32) (result $numbers) (canon lift (core func $main "count") async))
  (func (export "written") (result u32) (canon lift (core func $main "written")))
  (func (export "fail") async (result $numbers) (canon lift (core func $main "fail") async))
  (func (export "words") async (result $words)
    (canon lift (core func $main "words") async (memory (core memory $memory "m"))))
  (func (export "length") async (param "f" $text) (result $number)
    (canon lift (core func $main "length") async))
  (func (export "twice") async (result u32) (canon lift (core func $main "twice") async)))`;

interface Exports {
  sum(bytes: unknown): Promise<number>;
  first(bytes: unknown): Promise<number>;
  count(n: number): Promise<ReadableStream<number>>;
  written(): number;
  fail(): Promise<ReadableStream<number>>;
  words(): Promise<ReadableStream<string>>;
  length(text: unknown): Promise<Promise<number>>;
  twice(): Promise<number>;
}

const component = compileComponent(NewEngine(), COMPONENT);

function instantiate(ask: (question: string) => unknown = () => 0): Exports {
  return component.instantiate<Exports>({}, { ask }).exports;
}

async function all<T>(stream: ReadableStream<T>): Promise<T[]> {
  const items: T[] = [];
  const reader = stream.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) items.push(next.value);
  return items;
}

function streamOf(chunks: readonly unknown[], onCancel: () => void = () => {}): ReadableStream<unknown> {
  const waiting = [...chunks];
  return new ReadableStream({
    pull(controller) {
      if (waiting.length === 0) controller.close();
      else controller.enqueue(waiting.shift());
    },
    cancel: onCancel,
  });
}

Deno.test("a component reads a stream of bytes from any source", async () => {
  const { sum } = instantiate();
  assert.equal(await sum(streamOf([Uint8Array.of(1, 2, 3, 4, 5), Uint8Array.of(6), new Uint8Array(0)])), 21);
  assert.equal(await sum(Uint8Array.of(1, 2, 3, 4)), 10);
  assert.equal(await sum([250, 5]), 255);
  assert.equal(await sum(new Set([1, 2])), 3);
  assert.equal(await sum([]), 0);
  async function* later() {
    yield Uint8Array.of(1, 2);
    await new Promise((resolve) => setTimeout(resolve, 1));
    yield 3;
  }
  assert.equal(await sum(later()), 6);
});

Deno.test("an argument that is not a stream ends only its call", async () => {
  const { sum } = instantiate();
  const error = { name: "TypeError", message: "Expected a ReadableStream or an iterable, not number" };
  const running = sum(streamOf([Uint8Array.of(1), Uint8Array.of(2)]));
  await Promise.all([assert.rejects(sum(5), error), assert.rejects(sum(6), error)]);
  assert.equal(await running, 3);
  assert.equal(await sum([1, 2]), 3);
});

Deno.test("a source is cancelled when the component drops its end", async () => {
  let cancelled = false;
  const source = streamOf(Array.from({ length: 9 }, (_, k) => Uint8Array.of(9 - k)), () => cancelled = true);
  assert.equal(await instantiate().first(source), 9);
  await until(() => cancelled);
});

Deno.test("an error of a source ends the call that reads it", async () => {
  const broken = new ReadableStream({ pull: (controller) => controller.error(new RangeError("broken source")) });
  await assert.rejects(instantiate().sum(broken), { name: "RangeError", message: "broken source" });
});

Deno.test("JavaScript reads a component's streams, whose writer waits for it", async () => {
  const { count, words, written } = instantiate();
  assert.deepEqual(await all(await count(5)), [0, 1, 2, 3, 4]);
  assert.deepEqual(await all(await words()), ["first", "second"]);
  assert.deepEqual(await all(await count(0)), []);
  const reader = (await count(1_000_000)).getReader();
  assert.deepEqual([(await reader.read()).value, (await reader.read()).value], [0, 1]);
  await reader.cancel();
  await until(() => written() > 0);
  assert.ok(written() < 10, `${written()} elements were written`);
});

Deno.test("a trap of the writer is the error of the stream", async () => {
  const reader = (await instantiate().fail()).getReader();
  assert.equal((await reader.read()).value, 0);
  await assert.rejects(reader.read(), { name: "TrapError", message: /unreachable/ });
});

Deno.test("futures are promises in both directions", async () => {
  const { length } = instantiate();
  assert.equal(await (await length(Promise.resolve("grüße"))), 7);
  assert.equal(await (await length("text")), 4);
  await assert.rejects(length(Promise.reject(new RangeError("no text"))), { name: "RangeError", message: "no text" });
});

Deno.test("asynchronous functions of the host end later", async () => {
  const { twice } = instantiate((question) =>
    new Promise((resolve) => setTimeout(() => resolve(question === "first" ? 21 : 0), 1))
  );
  assert.deepEqual(await Promise.all([twice(), twice()]), [42, 42]);
  await assert.rejects(instantiate(() => Promise.reject(new RangeError("no answer"))).twice(), { name: "RangeError" });
});

/** Returns the handles of a stream and a future, `10 * s + f`. */
const HOLDER = `(component
  (type $s (stream u8)) (type $f (future u32))
  (core module $m (memory (export "m") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 64))
    (func (export "hold") (param i32 i32 i32 i32) (result i32)
      (i32.add (i32.mul (i32.const 10) (local.get 0)) (local.get 1))))
  (core instance $i (instantiate $m))
  (func (export "hold") (param "s" $s) (param "f" $f) (param "t" string) (result u32)
    (canon lift (core func $i "hold") (memory (core memory $i "m")) (realloc (core func $i "realloc")))))`;

/** The same, in a component whose calls are tasks. */
const HOLDER_OF_TASKS = HOLDER.replace("(core instance", "(core func (canon backpressure.inc)) (core instance");

for (const [kind, text] of [["a call", HOLDER], ["a task", HOLDER_OF_TASKS]] as const) {
  Deno.test(`streams and futures stay JavaScript's when a later argument of ${kind} is refused`, async () => {
    const instance = compileComponent(NewEngine(), text).instantiate({ resettable: true });
    const hold = instance.exports.hold as (s: unknown, f: unknown, t: unknown) => number;
    let pulls = 0;
    const stream = new ReadableStream({
      pull: (controller) => {
        pulls++;
        controller.enqueue(Uint8Array.of(7));
      },
    }, { highWaterMark: 0 });
    let returns = 0;
    const items = {
      [Symbol.iterator]: () => ({
        next: () => ({ done: false, value: 1 }),
        return: () => ({ done: true, value: returns++ }),
      }),
    };
    let waits = 0;
    const future = { then: () => waits++ };
    for (const source of [stream, items, stream]) {
      assert.throws(() => hold(source, future, 5), TypeError);
      assert.throws(() => hold(source, future, Symbol()), TypeError);
    }
    await new Promise((resolve) => setTimeout(resolve, 0));
    assert.deepEqual([stream.locked, pulls, returns, waits], [false, 0, 0, 0]);
    await assert.rejects(instance.callAsync({}, "hold", stream, future, 5), TypeError);
    assert.deepEqual([stream.locked, waits], [false, 0]);
    instance.reset(); // nothing of the refused calls is in progress
    assert.equal(hold(stream, future, ""), 12, "the refused calls left no handles");
    assert.equal(stream.locked, true);
    assert.throws(() => hold(stream, future, ""), TypeError);
    instance.close();
    const other = new ReadableStream({ start: (controller) => controller.enqueue(Uint8Array.of(9)) });
    const again = compileComponent(NewEngine(), text).instantiate();
    assert.throws(() => (again.exports.hold as typeof hold)(other, 1, 5), TypeError);
    assert.deepEqual(await other.getReader().read(), { done: false, value: Uint8Array.of(9) });
    again.close();
  });
}
