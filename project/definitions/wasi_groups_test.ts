/**
 * WASI narrowed by a project: the functions that each group removes, and that nothing widens it by accident.
 */
import assert from "node:assert/strict";
import { Wasi } from "@waft/engine/wasi";
import { salvage } from "../lockfile/lock_merge.ts";
import {
  narrowedInputs,
  narrowedStreams,
  narrowedWasi,
  parseWasiGroups,
  WASI_GROUP_NAMES,
  WASI_GROUPS,
} from "./wasi_groups.ts";

const { imports } = new Wasi({ args: [], env: [], preopens: [] });

Deno.test("wasi groups: the functions that they name exist, in one group each", () => {
  const named = WASI_GROUPS.flatMap((g) => g.functions);
  for (const name of named) assert.ok(name in imports, name);
  assert.equal(new Set(named).size, named.length);
  assert.deepEqual(WASI_GROUP_NAMES, [...WASI_GROUP_NAMES].sort());
});

Deno.test("wasi groups: functions of removed groups answer an error, the others are untouched", () => {
  assert.equal(narrowedWasi(imports, undefined), imports);
  const none = narrowedWasi(imports, []);
  assert.deepEqual(Object.keys(none), Object.keys(imports), "every import can still be linked");
  const call = (f: unknown, ...args: unknown[]): unknown => (f as (...args: unknown[]) => unknown)(...args);
  for (const name of WASI_GROUPS.flatMap((g) => g.functions)) assert.equal(call(none[name], 0, 0, 0, 0), 76, name);
  assert.equal(none.proc_exit, imports.proc_exit);
  const some = narrowedWasi(imports, ["random", "stdio"]);
  assert.equal(some.random_get, imports.random_get);
  assert.equal(some.fd_write, imports.fd_write);
  assert.equal(call(some.clock_time_get), 76);
});

Deno.test("wasi groups: without stdio, no stream is left", () => {
  assert.deepEqual(narrowedStreams([0, 1, 2], ["clock"]), { stdio: "none" });
  assert.deepEqual(narrowedStreams([0, 2, 2], ["stdio"]), { stdio: [0, 2, 2] });
  assert.deepEqual(narrowedStreams([0, 2, 2], undefined), { stdio: [0, 2, 2] });
  assert.deepEqual(narrowedStreams(undefined, undefined), {});
});

Deno.test("wasi groups: default inputs are dropped, explicit ones are refused", () => {
  const inputs = { args: ["program"], env: [], preopens: [] };
  assert.deepEqual(narrowedInputs(inputs, []).args, []);
  assert.deepEqual(narrowedInputs(inputs, ["args"]).args, ["program"]);
  for (
    const [more, word] of [[{ args: ["p", "x"] }, "args"], [{ env: [["A", "b"]] as const }, "env"], [
      { preopens: [1] },
      "fs",
    ]] as const
  ) {
    assert.throws(() => narrowedInputs({ ...inputs, ...more }, []), new RegExp(`authority\\.wasi.*\\(${word}\\)`));
    narrowedInputs({ ...inputs, ...more }, [word]);
    narrowedInputs({ ...inputs, ...more }, undefined);
  }
});

Deno.test("wasi groups: words, and the remains of a damaged or conflicted lockfile", () => {
  assert.deepEqual([parseWasiGroups("all"), parseWasiGroups("none"), parseWasiGroups("fs,args,fs")], [
    undefined,
    [],
    ["args", "fs"],
  ]);
  for (const wrong of ["", "al", "fs,", "fs args", "none,fs", "__proto__"]) {
    assert.throws(() => parseWasiGroups(wrong), /usage\.wasi/);
  }
  const kept = (text: string): readonly string[] | undefined => salvage(new TextEncoder().encode(text)).wasi;
  assert.equal(kept("{}"), undefined);
  assert.deepEqual(kept('{ "guest": { "wasi": ["fs", "fly"] } }'), ["fs"]);
  assert.deepEqual(kept('{ "guest": { "wasi": "all" } }'), []);
  const conflict = (ours: string, theirs: string): string =>
    `{ "guest": {\n<<<<<<< a\n${ours}\n=======\n${theirs}\n>>>>>>> b\n} }\n`;
  assert.deepEqual(kept(conflict('"wasi": ["args", "fs"]', '"wasi": ["fs", "stdio"]')), ["fs"]);
  assert.deepEqual(kept(conflict('"wasi": ["args"]', '"bindings": {}')), ["args"]);
  assert.deepEqual(kept(conflict('"bindings": {}', '"wasi": []')), []);
});
