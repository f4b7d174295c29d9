/**
 * Salvage of invalid lockfiles: sides of a merge, individually valid entries, decisions that agree.
 */
import assert from "node:assert/strict";
import { conflictSides, fromLockfile, salvage } from "./lock_merge.ts";
import { type LockDraft, sealLockfile, writeLockfile } from "./lock_write.ts";
import { CODEC, KV, kvDefinition, sampleDraft } from "../../tests/project/sample_plugins.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
function textOf(change: (draft: LockDraft) => void = () => {}): string {
  const draft = sampleDraft();
  change(draft);
  return new TextDecoder().decode(writeLockfile(sealLockfile(draft)));
}
const both = (ours: string, theirs: string): Uint8Array =>
  encode(`<<<<<<< HEAD\n${ours}=======\n${theirs}>>>>>>> branch\n`);

Deno.test("merge: sides of plain and diff3 conflicts, with either line end", () => {
  assert.deepEqual(conflictSides("a\n<<<<<<< x\nb\n=======\nc\n>>>>>>> y\nd"), ["a\nb\nd", "a\nc\nd"]);
  assert.deepEqual(conflictSides("<<<<<<< x\nb\n||||||| base\nz\n=======\nc\n>>>>>>> y"), ["b", "c"]);
  assert.deepEqual(conflictSides("<<<<<<< x\r\nb\r\n=======\r\nc\r\n>>>>>>> y\r\n"), ["b\r\n", "c\r\n"]);
});

Deno.test("merge: equal entries are kept, entries of one side too", () => {
  const kept = salvage(both(
    textOf(),
    textOf((d) => {
      d.packages["a.b/c"] = { ...d.packages[CODEC], source: { kind: "path", path: "./c" } };
      d.plugins["a.b/c"] = {
        ...d.plugins[CODEC],
        package: "a.b/c",
        definition: { ...d.plugins[CODEC].definition, id: "a.b/c" },
      };
    }),
  ));
  assert.deepEqual(Object.keys(kept.plugins).sort(), ["a.b/c", CODEC, KV].sort());
  assert.ok([...kept.reviewed.values()].every((r) => r.intact));
});

Deno.test("merge: another version under the same decision keeps the decision, other grants do not", () => {
  const newer = (d: LockDraft): void => {
    d.packages[KV].version = "1.2.4";
    d.plugins[KV].definition = kvDefinition("1.2.4");
  };
  const kept = salvage(both(textOf(), textOf(newer)));
  assert.deepEqual([Object.keys(kept.plugins), kept.reviewed.get(KV)?.intact], [[CODEC], true]);
  const differ = salvage(both(
    textOf(),
    textOf((d) => {
      newer(d);
      delete d.plugins[KV].grants["fs.write"];
      d.plugins[KV].denied.push("fs.write");
    }),
  ));
  assert.equal(differ.reviewed.has(KV), false);
});

Deno.test("salvage: each entry stands by itself", () => {
  const good = textOf();
  assert.deepEqual(Object.keys(salvage(encode(good)).plugins).sort(), [CODEC, KV]);
  const rows: readonly (readonly [string, string, string[], boolean | undefined])[] = [
    ["description changed", good.replace('"description": "The plugin github.com/acme/kv"', '"description": "x"'), [
      CODEC,
    ], undefined],
    ["package digest changed", good.replace('"size": 48213', '"size": 48214'), [CODEC], undefined],
    ["grant changed", good.replace("./data", "/"), [CODEC, KV], false],
    ["grant of nonsense", good.replace('"/store": "./data"', '"/store": 1'), [CODEC], undefined],
    ["configuration changed", good.replace('"maxEntries": 1000', '"maxEntries": 5'), [CODEC, KV], true],
    ["unknown key elsewhere", good.replace('"lockVersion": 1', '"lockVersion": 1, "x": 1'), [CODEC, KV], true],
    ["no JSON", good.slice(5), [], undefined],
    ["an array", "[]", [], undefined],
    ["plugins is text", '{"plugins":"x","packages":[]}', [], undefined],
  ];
  for (const [name, text, plugins, intact] of rows) {
    assert.notEqual(text, good, name);
    const kept = salvage(encode(text));
    assert.deepEqual([Object.keys(kept.plugins).sort(), kept.reviewed.get(KV)?.intact], [plugins, intact], name);
  }
  const lock = sealLockfile(sampleDraft());
  assert.equal(fromLockfile(lock).reviewed.get(KV)!.intact, true);
});
