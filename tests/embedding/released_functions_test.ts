/**
 * Instances whose functions compiled code got and dropped again are collected. In: instances that JavaScript no longer
 * refers to. Out: the number of open instances after a sweep. No program of this file has objects, of which a sweep
 * does not know to which instance they belong.
 */
import assert from "node:assert/strict";
import { type Instance, NewEngine } from "../../engine/mod.ts";
import { realmStore } from "../../engine/runtime/realm_store.ts";
import { settle } from "../support/collect_garbage.ts";

const COUNT = 30;
const engine = NewEngine();
const GIVER = engine.compile(`(module (tag $t (param funcref externref))
  (func $f (export "f") (param funcref) (result i32) (i32.const 7))
  (func (export "throw") (param externref) (throw $t (ref.func $f) (local.get 0))))`);
const RECEIVER = engine.compile(`(module (table (export "table") 2 funcref) (global $held (mut funcref) (ref.null func))
  (func (export "take") (param funcref) (global.set $held (local.get 0))))`);

type Functions = Record<string, (...args: unknown[]) => unknown>;

/** The number of instances of GIVER that stay open after each was put to `use`. */
async function remaining(use: (giver: Functions, receiver: Instance) => void): Promise<number> {
  const receiver = RECEIVER.instantiate();
  await settle();
  const { thread, openInstances } = realmStore();
  for (let k = 0; k < COUNT; k++) use(GIVER.instantiate().exports as Functions, receiver);
  thread.sweepDue = true;
  thread.services.atSafepoint();
  await settle();
  const left = realmStore().openInstances - openInstances;
  RECEIVERS.push(receiver);
  return left;
}
const RECEIVERS: Instance[] = [];

const USES: Readonly<Record<string, (giver: Functions, receiver: Instance) => void>> = {
  "replaced in a global by code": ({ f }, receiver) => (receiver.exports as Functions)["take"](f),
  "replaced in a table by JavaScript": ({ f }, receiver) => {
    (receiver.exports["table"] as { set(index: number, value: unknown): void }).set(1, f);
  },
  "thrown to JavaScript": (giver) => void assert.throws(() => giver["throw"]({})),
};

for (const [name, use] of Object.entries(USES)) {
  Deno.test(`an instance is collected after its function was ${name}`, async () => {
    const left = await remaining(use);
    assert.ok(left < COUNT / 4, `${left} of ${COUNT} instances are left`);
  });
}
