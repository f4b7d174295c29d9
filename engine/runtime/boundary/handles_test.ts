/**
 * Handle tables: identity of values, reuse of numbers, sweep thresholds, and the effect of a sweep.
 */
import assert from "node:assert/strict";
import { HandleTable } from "./handles.ts";

const TAG = 2;

Deno.test("a value keeps its number while it is in the table; every string gets a new one", () => {
  const table = new HandleTable(TAG);
  const object = {};
  for (const value of [object, undefined, NaN, 0, -0, 1.5, 10n, true, Symbol("s"), () => {}]) {
    const word = table.handleOf(value);
    assert.equal(word & 7, TAG);
    assert.equal(table.handleOf(value), word);
    assert.ok(Object.is(table.valueOf(word), value));
    assert.ok(table.has(value));
  }
  assert.notEqual(table.handleOf(0), table.handleOf(-0));
  const [a, b] = [table.handleOf("text"), table.handleOf("text")];
  assert.equal(table.valueOf(a), "text");
  assert.equal(table.valueOf(b), "text");
  assert.equal(table.size, 12);
  assert.deepEqual([...table.values()].filter((value) => value === "text").length, 2);
  assert.equal(table.handleOf(null), 0);
  assert.equal(table.valueOf(0), null);
});

Deno.test("a sweep frees unmarked values, including undefined, and their numbers are reused", () => {
  const table = new HandleTable(TAG);
  const words = ["a", undefined, {}, "b", 2.5].map((value) => table.handleOf(value));
  table.sweep((mark) => {
    mark(words[3]);
    mark(words[4]);
    mark(words[4] + 8000); // not a number of the table
    mark(5); // not a reference of this kind
  });
  assert.equal(table.size, 2);
  assert.deepEqual([...table.values()], ["b", 2.5]);
  assert.ok(!table.has(undefined) && table.has(2.5));
  assert.equal(table.valueAt(1), undefined);
  const { count } = table;
  for (const value of ["c", undefined, "d"]) assert.equal(table.valueOf(table.handleOf(value)), value);
  assert.equal(table.count, count);
  table.sweep(() => {});
  assert.equal(table.size, 0);
});

Deno.test("a sweep becomes due by the number of values and by the amount of text added", () => {
  const objects = new HandleTable(TAG);
  for (let i = 0; i < 1023; i++) objects.handleOf({});
  assert.ok(!objects.full);
  objects.handleOf({});
  assert.ok(objects.full);
  const strings = new HandleTable(TAG);
  for (let i = 0; i < 8191; i++) strings.handleOf("short");
  assert.ok(!strings.full);
  strings.handleOf("short");
  assert.ok(strings.full);
  strings.sweep(() => {});
  assert.ok(!strings.full);
  const large = "x".repeat(2 ** 20);
  for (let i = 0; i < 8; i++) strings.handleOf(large);
  assert.ok(strings.full);
});

Deno.test("numbers stay below the limit", () => {
  const handles = new HandleTable(TAG);
  handles.limit(3);
  const [a, b] = [{}, {}];
  const first = handles.handleOf(a);
  handles.handleOf(b);
  assert.throws(() => handles.handleOf({}), RangeError);
  assert.throws(() => handles.limit(2), RangeError);
  handles.sweep((mark) => mark(first));
  assert.equal(handles.handleOf({}) >>> 3, 2, "a freed number is reused");
});

Deno.test("values held weakly keep their numbers, are held strongly once used, and count like others", () => {
  const table = new HandleTable(TAG);
  const values = [{}, () => {}, [1]];
  const words = values.map((value) => table.handleOf(value));
  const [text, number] = [table.handleOf("text"), table.handleOf(1.5)];
  assert.deepEqual(words.map((word) => table.weaken(word)), values);
  assert.deepEqual([table.weaken(text), table.weaken(number)], [undefined, undefined], "they are not objects");
  assert.deepEqual([table.size, table.identities], [5, 4]);
  assert.ok(values.every((value) => table.has(value)));
  assert.equal(table.weaken(words[0]), values[0]);
  assert.equal(table.handleOf(values[0]), words[0]);
  assert.equal(table.valueOf(words[1]), values[1]);
  assert.equal(table.valueAt(words[2] >> 3), values[2]);
  assert.equal(table.identities, 4);
  table.sweep((mark) => mark(words[0]));
  assert.deepEqual([table.size, table.identities], [1, 1]);
  assert.deepEqual([...table.values()], [values[0]]);
  assert.ok(!table.has(values[1]) && !table.has(values[2]), "weak or not, unmarked values are freed");
  const again = table.handleOf(values[2]);
  assert.equal(table.valueOf(again), values[2]);
  table.weaken(again);
  table.weaken(words[0]);
  table.strengthenAll();
  assert.deepEqual([table.valueOf(again), table.valueOf(words[0])], [values[2], values[0]]);
});

Deno.test("a sweep is due after 1,024 values with identity, or eight times as many that no lookup finds", () => {
  const known = new HandleTable(TAG), entered = new HandleTable(TAG);
  for (let n = 1; n < 1024; n++) known.handleOf({ n });
  for (let n = 1; n < 8 * 1024; n++) entered.enter({ n });
  assert.deepEqual([known.full, entered.full], [false, false]);
  known.handleOf({ n: 0 });
  entered.enter({ n: 0 });
  assert.deepEqual([known.full, entered.full], [true, true]);
  entered.sweep(() => {});
  assert.equal(entered.full, false);
});

Deno.test("values that no lookup finds count as values with identity, stay strong, and are reported when they are freed", () => {
  const freed: unknown[] = [];
  const table = new HandleTable(TAG, (value) => freed.push(value));
  const objects = [{ n: 0 }, { n: 1 }, { n: 2 }];
  const words = objects.map((object) => table.enter(object));
  const known = table.handleOf(objects);
  assert.equal(new Set([...words, known]).size, 4);
  assert.deepEqual([table.identities, table.has(objects[0]), table.has(objects)], [4, false, true]);
  assert.equal(table.valueOf(words[1]), objects[1]);
  assert.equal(table.weaken(words[1]), undefined);
  table.sweep((mark) => mark(words[1]));
  assert.deepEqual(freed, [objects[0], objects[2], objects]);
  assert.equal(table.identities, 1);
  table.sweep(() => {});
  assert.equal(table.identities, 0);
});
