/** Settings by name: values, origins, changes of the manifest. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MANIFEST_SCHEMA } from "../../base/constants.ts";
import { removeFolder } from "../../../tests/support/remove_folder.ts";
import { changeConfig, entryOf, readConfig } from "./config.ts";

/** Runs `action` in a project with this manifest. */
async function inProject(manifest: string, action: (root: string, text: () => string) => Promise<void>): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "waft-config-"));
  const file = join(root, "waft.json");
  writeFileSync(file, manifest);
  try {
    await action(root, () => readFileSync(file, "utf8"));
  } finally {
    removeFolder(root);
  }
}

const PLAIN = `{\n  "$schema": "${MANIFEST_SCHEMA}"\n}\n`;

Deno.test("a setting that is set is in the manifest, applies, and can be removed again", async () => {
  await inProject(PLAIN, async (root, text) => {
    const change = async (key: string, value: string | undefined) =>
      await changeConfig(root, entryOf(await readConfig(root), key), value, false);
    const value = async (key: string) => {
      const { value, from } = entryOf(await readConfig(root), key);
      return [value, from];
    };
    assert.deepEqual(await value("features.simd"), [true, "default"]);
    assert.equal(await change("features.simd", "off"), true);
    assert.deepEqual(await value("features.simd"), [false, "manifest"]);
    assert.equal(await change("features.simd", "off"), false, "it is off already");
    assert.equal(await change("runtime.parallel", "4"), true);
    assert.equal(await change("runtime.deferredBoundsChecking", "false"), true);
    assert.deepEqual(JSON.parse(text()).settings, {
      features: { simd: false },
      runtime: { parallel: "4", deferredBoundsChecking: false },
    });
    assert.deepEqual(await value("runtime.parallel"), ["4", "manifest"]);
    for (const key of ["features.simd", "runtime.parallel", "runtime.deferredBoundsChecking"]) {
      assert.equal(await change(key, undefined), true);
    }
    assert.equal(text(), PLAIN);
  });
});

Deno.test("a change affects the lines of its key alone", async () => {
  const manifest = PLAIN.replace(/\n}/, ',\n  "settings": { "optimizations": { "inline": false } }\n}');
  await inProject(manifest, async (root, text) => {
    const entry = entryOf(await readConfig(root), "optimizations.inline");
    assert.equal(await changeConfig(root, entry, "on", true), true);
    assert.equal(text(), manifest, "a dry run writes nothing");
    assert.equal(await changeConfig(root, entry, "on", false), true);
    assert.equal(text(), manifest.replace("false", "true"));
  });
});

Deno.test("wrong names and values are one error, and the manifest stays", async () => {
  await inProject(PLAIN, async (root, text) => {
    const config = await readConfig(root);
    assert.throws(() => entryOf(config, "features.smid"), /"features\.smid" is not a setting/);
    assert.throws(() => entryOf(config, "features.__proto__"), /is not a setting/);
    await assert.rejects(changeConfig(root, entryOf(config, "features.simd"), "maybe", false), /takes on or off/);
    await assert.rejects(changeConfig(root, entryOf(config, "runtime.parallel"), "many", false));
    assert.equal(text(), PLAIN);
  });
});
