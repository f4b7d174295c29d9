/**
 * Symbols and scopes: interning, single bindings, labels that shadow one another.
 */
import assert from "node:assert/strict";
import { LabelScope, Scope } from "./scopes.ts";
import { NO_SYMBOL, SymbolTable } from "./symbols.ts";

const encoder = new TextEncoder();

function intern(table: SymbolTable, text: string): number {
  const bytes = encoder.encode(text);
  return table.intern(bytes, 0, bytes.length);
}

Deno.test("equal bytes are one symbol, through growth", () => {
  const table = new SymbolTable();
  const first = Array.from({ length: 5000 }, (_, i) => intern(table, `name ${i}`));
  assert.deepEqual(first, Array.from({ length: 5000 }, (_, i) => i));
  for (let i = 0; i < 5000; i++) assert.equal(intern(table, `name ${i}`), i);
  assert.equal(table.size, 5000);
  assert.equal(table.text(4321), "name 4321");
  const bytes = encoder.encode("other");
  assert.equal(table.find(bytes, 0, bytes.length), NO_SYMBOL);
  assert.equal(table.text(intern(table, "\ufeffé")), "\ufeffé");
});

Deno.test("an index space binds each symbol once and forgets on clear", () => {
  const scope = new Scope("func", "function");
  assert.ok(scope.declare(7));
  assert.ok(scope.declare(NO_SYMBOL));
  assert.ok(scope.declare(1000));
  assert.equal(scope.declare(7), false);
  assert.equal(scope.find(7), 0);
  assert.equal(scope.find(1000), 2);
  assert.equal(scope.find(8), -1);
  assert.equal(scope.find(100_000), -1);
  scope.clear();
  assert.equal(scope.count, 0);
  assert.equal(scope.find(7), -1);
  assert.ok(scope.declare(7));
});

Deno.test("labels are found from the inside out", () => {
  const labels = new LabelScope();
  labels.push(1);
  labels.push(NO_SYMBOL);
  labels.push(1);
  labels.push(2);
  assert.equal(labels.find(1), 1);
  assert.equal(labels.find(2), 0);
  labels.pop();
  labels.pop();
  assert.equal(labels.find(1), 1);
  assert.equal(labels.find(2), -1);
  labels.clear();
  assert.equal(labels.find(1), -1);
});
