/**
 * Concurrent accesses of several threads to one memory, and their permitted outcomes. In: a team of four Workers with
 * TORTURE, and a repetition count. Out: nothing, or an assertion error. The model is sequential consistency of atomic
 * accesses, exact read-modify-write operations, and plain accesses ordered by them.
 *
 * Litmus tests run in rounds on separate cells, as concurrently as the scheduler allows: before each round a thread
 * waits briefly for the other, but only briefly, so that a busy machine weakens the test instead of slowing it down.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import type { Team } from "./team.ts";

/** Bytes of a litmus round: x, y, first result, second result, each in its own cache line. */
const ROUND = 256;
const X = 0, Y = 64, R1 = 128, R2 = 192;
/** Offset of the first round: the page before it contains the other tests' counters. */
const ROUNDS = 0x10000;
/** Maximum number of rounds. */
export const MAX_ROUNDS = 4096;

/** `i32.const`. */
const k = (n: number) => `(i32.const ${n})`;

/** A function that runs `body` in each round at $at, after a short wait for the other thread's progress. */
function litmus(name: string, mine: number, other: number, body: string): string {
  return `(func (export "${name}") (param $n i32) (local $i i32) (local $at i32) (local $spin i32)
    (call $meet ${k(2)})
    (local.set $at ${k(ROUNDS)})
    (loop $round
      (i32.atomic.store ${k(mine)} (local.get $i))
      (local.set $spin ${k(3000)})
      (loop $wait
        (br_if $wait (i32.and
          (i32.lt_u (i32.atomic.load ${k(other)}) (local.get $i))
          (i32.ne ${k(0)} (local.tee $spin (i32.sub (local.get $spin) ${k(1)}))))))
      ${body}
      (local.set $at (i32.add (local.get $at) ${k(ROUND)}))
      (br_if $round (i32.lt_u (local.tee $i (i32.add (local.get $i) ${k(1)})) (local.get $n)))))`;
}

const at = (offset: number) => `offset=${offset} (local.get $at)`;
const set = (offset: number) => `(i32.atomic.store ${at(offset)} ${k(1)})`;
const get = (offset: number, result: number) => `(i32.store ${at(result)} (i32.atomic.load ${at(offset)}))`;

/** Offsets of words in the first page. */
const PROGRESS_A = 0, PROGRESS_B = 64, COUNTER32 = 128, COUNTER64 = 136, COUNTER8 = 144, COUNTER16 = 146;
const EXCHANGED = 152, BITS = 160, SPIN = 192, GUARDED = 256, MUTEX = 320, TURN = 384, WAITING = 448, GATE = 452;
const LATCH = 456, BARRIER = 512, MEETING = 576;
/** A queue of 64 cells { sequence, value } after its two positions. */
const QUEUE_IN = 1024, QUEUE_OUT = 1088, QUEUE = 1152, QUEUE_CELLS = 64;
/** Sum and number of the items taken from the queue. */
const TAKEN = 2048, SUM = 2112;

/** The program of every thread. */
export const TORTURE = `(module (import "env" "memory" (memory 1 64 shared))
  ;; continues when $size threads have arrived; waiters spin for a while, to continue at once
  (func $meet (param $size i32) (local $seen i32) (local $spin i32)
    (drop (i32.atomic.rmw.add ${k(MEETING)} ${k(1)}))
    (drop (memory.atomic.notify ${k(MEETING)} ${k(-1)}))
    (loop $l
      (local.set $seen (i32.atomic.load ${k(MEETING)}))
      (if (i32.lt_u (local.get $seen) (local.get $size))
        (then
          (if (i32.gt_u (local.tee $spin (i32.add (local.get $spin) ${k(1)})) ${k(200_000)})
            (then (drop (memory.atomic.wait32 ${k(MEETING)} (local.get $seen) (i64.const -1)))))
          (br $l)))))
  ${litmus("sb_a", PROGRESS_A, PROGRESS_B, set(X) + get(Y, R1))}
  ${litmus("sb_b", PROGRESS_B, PROGRESS_A, set(Y) + get(X, R2))}
  ${litmus("lb_a", PROGRESS_A, PROGRESS_B, get(X, R1) + set(Y))}
  ${litmus("lb_b", PROGRESS_B, PROGRESS_A, get(Y, R2) + set(X))}
  ${litmus("mp_a", PROGRESS_A, PROGRESS_B, `(i32.store ${at(X)} ${k(42)})` + set(Y))}
  ${
  litmus(
    "mp_b",
    PROGRESS_B,
    PROGRESS_A,
    `(if (i32.atomic.load ${at(Y)}) (then (i32.store ${at(R1)} ${k(1)}) (i32.store ${at(R2)} (i32.load ${at(X)}))))`,
  )
}
  (func (export "count") (param $n i32) (call $meet ${k(4)}) (loop $l
    (drop (i32.atomic.rmw.add ${k(COUNTER32)} ${k(1)}))
    (drop (i64.atomic.rmw.sub ${k(COUNTER64)} (i64.const -3)))
    (drop (i32.atomic.rmw8.add_u ${k(COUNTER8)} ${k(1)}))
    (drop (i64.atomic.rmw16.add_u ${k(COUNTER16)} (i64.const 1)))
    (br_if $l (local.tee $n (i32.sub (local.get $n) ${k(1)})))))
  ;; every old value is returned once: marks the byte of each
  (func (export "unique") (param $n i32) (local $old i32) (call $meet ${k(4)}) (loop $l
    (local.set $old (i32.atomic.rmw.add ${k(COUNTER32)} ${k(1)}))
    (drop (i32.atomic.rmw8.add_u (i32.add ${k(ROUNDS)} (local.get $old)) ${k(1)}))
    (br_if $l (local.tee $n (i32.sub (local.get $n) ${k(1)})))))
  (func (export "exchange") (param $n i32) (local $seen i64) (call $meet ${k(4)}) (loop $l
    (local.set $seen (i64.atomic.load ${k(EXCHANGED)}))
    (br_if $l (i64.ne (local.get $seen)
      (i64.atomic.rmw.cmpxchg ${k(EXCHANGED)} (local.get $seen) (i64.add (local.get $seen) (i64.const 0x100000001)))))
    (br_if $l (local.tee $n (i32.sub (local.get $n) ${k(1)})))))
  ;; sets and clears this thread's bit with every bitwise operation; traps if another thread changed it
  (func (export "bits") (param $n i32) (param $bit i32) (call $meet ${k(4)}) (loop $l
    (if (i32.and (i32.atomic.rmw.or ${k(BITS)} (local.get $bit)) (local.get $bit)) (then unreachable))
    (if (i32.eqz (i32.and (i32.atomic.rmw.and ${k(BITS)} (i32.xor (local.get $bit) ${k(-1)})) (local.get $bit)))
      (then unreachable))
    (if (i32.and (i32.atomic.rmw.xor ${k(BITS)} (local.get $bit)) (local.get $bit)) (then unreachable))
    (if (i32.eqz (i32.and (i32.atomic.rmw.xor ${k(BITS)} (local.get $bit)) (local.get $bit))) (then unreachable))
    (br_if $l (local.tee $n (i32.sub (local.get $n) ${k(1)})))))
  ;; two plain words that only the lock holder accesses
  (func $touch (i32.store ${k(GUARDED)} (i32.add (i32.load ${k(GUARDED)}) ${k(1)}))
    (i64.store offset=8 ${k(GUARDED)} (i64.add (i64.load offset=8 ${k(GUARDED)}) (i64.const 5))))
  (func (export "spin") (param $n i32) (call $meet ${k(4)}) (loop $l
    (block $have (loop $try
      (br_if $have (i32.eqz (i32.atomic.rmw.xchg ${k(SPIN)} ${k(1)})))
      (drop (memory.atomic.wait32 ${k(SPIN)} ${k(1)} (i64.const 20000)))
      (br $try)))
    (call $touch)
    (i32.atomic.store ${k(SPIN)} ${k(0)})
    (br_if $l (local.tee $n (i32.sub (local.get $n) ${k(1)})))))
  ;; a sleeping mutex: 0 free, 1 held, 2 held with possible waiters
  (func (export "mutex") (param $n i32) (local $was i32) (call $meet ${k(4)}) (loop $l
    (if (local.tee $was (i32.atomic.rmw.cmpxchg ${k(MUTEX)} ${k(0)} ${k(1)}))
      (then (loop $again
        (if (i32.or (i32.eq (local.get $was) ${k(2)}) (i32.atomic.rmw.cmpxchg ${k(MUTEX)} ${k(1)} ${k(2)}))
          (then (drop (memory.atomic.wait32 ${k(MUTEX)} ${k(2)} (i64.const -1)))))
        (br_if $again (local.tee $was (i32.atomic.rmw.cmpxchg ${k(MUTEX)} ${k(0)} ${k(2)}))))))
    (call $touch)
    (if (i32.ne (i32.atomic.rmw.sub ${k(MUTEX)} ${k(1)}) ${k(1)})
      (then (i32.atomic.store ${k(MUTEX)} ${k(0)}) (drop (memory.atomic.notify ${k(MUTEX)} ${k(1)}))))
    (br_if $l (local.tee $n (i32.sub (local.get $n) ${k(1)})))))
  ;; passes the turn to the other side and waits for its return
  (func (export "pingpong") (param $n i32) (param $mine i64) (param $other i64) (call $meet ${k(2)}) (loop $l
    (block $have (loop $wait
      (br_if $have (i64.eq (i64.atomic.load ${k(TURN)}) (local.get $mine)))
      (drop (memory.atomic.wait64 ${k(TURN)} (local.get $other) (i64.const -1)))
      (br $wait)))
    (i64.atomic.store ${k(TURN)} (local.get $other))
    (drop (memory.atomic.notify ${k(TURN)} ${k(1)}))
    (br_if $l (local.tee $n (i32.sub (local.get $n) ${k(1)})))))
  (func (export "wait_at_gate") (result i32)
    (drop (i32.atomic.rmw.add ${k(WAITING)} ${k(1)}))
    (memory.atomic.wait32 ${k(GATE)} ${k(0)} (i64.const -1)))
  (func (export "wait_at_latch") (result i32)
    (drop (i32.atomic.rmw.add ${k(WAITING)} ${k(1)}))
    (memory.atomic.wait32 ${k(LATCH)} ${k(0)} (i64.const -1)))
  ;; a bounded multi-producer multi-consumer queue (after D. Vyukov): a cell's sequence number determines whose turn it
  ;; is
  (func $cell (param $position i32) (result i32)
    (i32.add ${k(QUEUE)} (i32.shl (i32.and (local.get $position) ${k(QUEUE_CELLS - 1)}) ${k(3)})))
  (func (export "queue_init") (local $i i32) (loop $l
    (i32.store (call $cell (local.get $i)) (local.get $i))
    (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) ${k(1)})) ${k(QUEUE_CELLS)}))))
  (func (export "produce") (param $n i32) (local $p i32) (local $c i32) (local $d i32) (call $meet ${k(4)}) (loop $item
    (loop $try
      (local.set $p (i32.atomic.load ${k(QUEUE_IN)}))
      (local.set $c (call $cell (local.get $p)))
      (local.set $d (i32.sub (i32.atomic.load (local.get $c)) (local.get $p)))
      (if (i32.lt_s (local.get $d) ${k(0)}) (then (drop (memory.atomic.wait32 ${k(BARRIER)} ${
  k(0)
} (i64.const 50000)))))
      (br_if $try (local.get $d))
      (br_if $try (i32.ne (local.get $p)
        (i32.atomic.rmw.cmpxchg ${k(QUEUE_IN)} (local.get $p) (i32.add (local.get $p) ${k(1)})))))
    (i32.store offset=4 (local.get $c) (local.get $n))
    (i32.atomic.store (local.get $c) (i32.add (local.get $p) ${k(1)}))
    (br_if $item (local.tee $n (i32.sub (local.get $n) ${k(1)})))))
  (func (export "consume") (param $n i32) (local $p i32) (local $c i32) (local $d i32) (call $meet ${k(4)}) (loop $item
    (loop $try
      (local.set $p (i32.atomic.load ${k(QUEUE_OUT)}))
      (local.set $c (call $cell (local.get $p)))
      (local.set $d (i32.sub (i32.atomic.load (local.get $c)) (i32.add (local.get $p) ${k(1)})))
      (if (i32.lt_s (local.get $d) ${k(0)}) (then (drop (memory.atomic.wait32 ${k(BARRIER)} ${
  k(0)
} (i64.const 50000)))))
      (br_if $try (local.get $d))
      (br_if $try (i32.ne (local.get $p)
        (i32.atomic.rmw.cmpxchg ${k(QUEUE_OUT)} (local.get $p) (i32.add (local.get $p) ${k(1)})))))
    (drop (i64.atomic.rmw.add ${k(SUM)} (i64.load32_u offset=4 (local.get $c))))
    (drop (i32.atomic.rmw.add ${k(TAKEN)} ${k(1)}))
    (i32.atomic.store (local.get $c) (i32.add (local.get $p) ${k(QUEUE_CELLS)}))
    (br_if $item (local.tee $n (i32.sub (local.get $n) ${k(1)})))))
  ;; grows page by page to the maximum; returns the number of successes and marks every old size in the first page
  (func (export "grow_all") (result i32) (local $old i32) (local $count i32)
    (loop $l
      (if (i32.ge_s (local.tee $old (memory.grow ${k(1)})) ${k(0)})
        (then
          (drop (i32.atomic.rmw8.add_u offset=4096 (local.get $old) ${k(1)}))
          (i32.store (i32.shl (local.get $old) ${k(16)}) ${k(7)})
          (local.set $count (i32.add (local.get $count) ${k(1)}))
          (br $l))))
    (local.get $count))
  ;; reads the last word below memory.size until the memory has $pages
  (func (export "read_to_end") (param $pages i32) (local $size i32) (loop $l
    (local.set $size (memory.size))
    (drop (i32.load (i32.sub (i32.shl (local.get $size) ${k(16)}) ${k(4)})))
    (br_if $l (i32.lt_u (local.get $size) (local.get $pages)))))
  (func (export "size") (result i32) (memory.size))
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0))))`;

/** A view of the memory at its current size. */
function words(team: Team): Int32Array {
  return new Int32Array(team.memory.buffer);
}

function clear(team: Team): void {
  new Uint8Array(team.memory.buffer).fill(0);
}

/** Runs both sides of a litmus test; returns the two results of each round. */
async function bothSides(team: Team, name: string, rounds: number): Promise<[number, number][]> {
  clear(team);
  const [a, b] = team.members;
  await Promise.all([a.call(`${name}_a`, rounds), b.call(`${name}_b`, rounds)]);
  const memory = words(team);
  return Array.from({ length: rounds }, (_, n) => {
    const at = (ROUNDS + n * ROUND) >> 2;
    return [memory[at + (R1 >> 2)], memory[at + (R2 >> 2)]];
  });
}

/** Store buffering: both threads cannot miss the other's store. */
export async function storeBuffering(team: Team, rounds: number): Promise<void> {
  for (const [a, b] of await bothSides(team, "sb", rounds)) {
    ok(a === 1 || b === 1, "both loads came before both stores");
  }
}

/** Load buffering: the threads cannot both see each other's later store. */
export async function loadBuffering(team: Team, rounds: number): Promise<void> {
  for (const [a, b] of await bothSides(team, "lb", rounds)) ok(a === 0 || b === 0, "both loads came after both stores");
}

/** Message passing: a thread that sees the flag sees the plain data written before it. */
export async function messagePassing(team: Team, rounds: number): Promise<void> {
  for (const [flag, data] of await bothSides(team, "mp", rounds)) equal(data, flag === 1 ? 42 : 0);
}

/** Read-modify-write operations of all widths lose no update and return every old value once. */
export async function counters(team: Team, times: number): Promise<void> {
  const { members } = team;
  clear(team);
  await Promise.all(members.map((member) => member.call("count", times)));
  const total = times * members.length;
  const memory = team.memory.buffer;
  equal(new Int32Array(memory)[COUNTER32 >> 2], total);
  equal(new BigInt64Array(memory)[COUNTER64 >> 3], BigInt(total * 3));
  equal(new Uint8Array(memory)[COUNTER8], total & 0xff);
  equal(new Uint16Array(memory)[COUNTER16 >> 1], total & 0xffff);

  clear(team);
  const marks = Math.min(times, 4000);
  await Promise.all(members.map((member) => member.call("unique", marks)));
  const seen = new Uint8Array(team.memory.buffer, ROUNDS, marks * members.length + 1);
  equal(seen.findIndex((count) => count !== 1), marks * members.length);

  clear(team);
  await Promise.all(members.map((member) => member.call("exchange", times)));
  equal(new BigInt64Array(team.memory.buffer)[EXCHANGED >> 3], BigInt(total) * 0x1_0000_0001n);

  clear(team);
  await Promise.all(members.map((member, n) => member.call("bits", times, 1 << (n * 8 + 7))));
  equal(words(team)[BITS >> 2], 0);
}

/** Locks built from atomic operations separate plain accesses. */
export async function locks(team: Team, times: number): Promise<void> {
  for (const lock of ["spin", "mutex"]) {
    clear(team);
    await Promise.all(team.members.map((member) => member.call(lock, times)));
    const total = times * team.members.length;
    equal(words(team)[GUARDED >> 2], total, lock);
    equal(new BigInt64Array(team.memory.buffer)[(GUARDED + 8) >> 3], BigInt(total * 5), lock);
  }
}

/** A queue delivers every item once. */
export async function queue(team: Team, times: number): Promise<void> {
  clear(team);
  const [a, b, c, d] = team.members;
  await a.call("queue_init");
  await Promise.all([
    a.call("produce", times),
    b.call("produce", times),
    c.call("consume", times),
    d.call("consume", times),
  ]);
  equal(words(team)[TAKEN >> 2], times * 2);
  equal(new BigInt64Array(team.memory.buffer)[SUM >> 3], BigInt(times) * BigInt(times + 1));
}

/** Two threads alternate by waking each other. */
export async function pingPong(team: Team, times: number): Promise<void> {
  clear(team);
  const [a, b] = team.members;
  const other = 1n << 40n; // differs from 0 in the high half only
  await Promise.all([a.call("pingpong", times, 0n, other), b.call("pingpong", times, other, 0n)]);
  equal(new BigInt64Array(team.memory.buffer)[TURN >> 3], 0n);
}

/** Notify wakes the requested number of waiters, only at its address, and also from JavaScript. */
export async function wakeUps(team: Team): Promise<void> {
  clear(team);
  const [a, b, c, d] = team.members;
  const gate = [a, b, c].map((member) => member.call("wait_at_gate"));
  const latch = d.call("wait_at_latch");
  const memory = words(team);
  while (Atomics.load(memory, WAITING >> 2) < 4) await new Promise((resolve) => setTimeout(resolve, 1));
  let woken = 0;
  while (woken < 3) {
    const now = Atomics.notify(memory, GATE >> 2, 2);
    ok(now <= 2 && woken + now <= 3);
    woken += now;
    if (now === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  deepEqual(await Promise.all(gate), [0, 0, 0]);
  equal(Atomics.notify(memory, GATE >> 2), 0);
  while (Atomics.notify(memory, LATCH >> 2) === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  equal(await latch, 0);
}

/** Growth with concurrent readers: every page is added once, and accesses below an observed size do not fault. */
export async function growing(team: Team): Promise<void> {
  clear(team);
  const before = team.memory.pages;
  const { maxPages } = team.memory;
  const [a, b, c, d] = team.members;
  const readers = [c, d].map((member) => member.call("read_to_end", maxPages));
  const grown = await Promise.all([a, b].map((member) => member.call("grow_all") as Promise<number>));
  await Promise.all(readers);
  equal(grown[0] + grown[1], maxPages - before);
  equal(team.memory.pages, maxPages);
  const marks = new Uint8Array(team.memory.buffer, 4096, maxPages);
  equal(marks.every((count, page) => count === (page < before ? 0 : 1)), true, "every page once");
  for (const member of team.members) {
    equal(await member.call("size"), maxPages);
    equal(await member.call("load", (maxPages - 1) * 0x10000), maxPages - 1 >= before ? 7 : 0);
    await member.call("load", maxPages * 0x10000).then(
      () => ok(false, "an access beyond the end did not trap"),
      (error: Error) => equal(error.message, "out of bounds memory access"),
    );
  }
}
