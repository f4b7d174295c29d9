/**
 * The JSON of `waft version` and `waft self`: each command as a process, against the fixture's release site, compared
 * with the published schemas.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { OUTPUT_SCHEMAS } from "../../project/output_schemas.ts";
import { assertOutputSchema, type Envelope, seenCommands } from "../cli_project/output_schema.ts";
import { waft } from "../cli_project/waft.ts";
import { machinePaths } from "../../project/base/paths.ts";
import { fakeBundle, ReleaseFixture, temporaryMachine } from "./release_fixture.ts";
import { removeFolder } from "../support/remove_folder.ts";

const OLD = "0.1.0";
const NEW = "0.1.1";

Deno.test({
  name: "version and self: every command that prints JSON conforms to its published schema",
  ignore: process.platform !== "linux" || process.arch !== "x64", // the fixture's bundles are shell scripts for linux/amd64
}, async () => {
  const site = new ReleaseFixture([OLD], { latest: OLD });
  const { home } = temporaryMachine();
  await site.listen();
  try {
    const keys = join(home, "keys.json");
    writeFileSync(keys, JSON.stringify(site.keys));
    const env = { WAFT_RELEASE_BASE: site.base, WAFT_RELEASE_KEYS: keys };
    const json = async (...args: string[]): Promise<Envelope> => {
      const { code, out, err } = await waft([...args, "--json"], home, home, env);
      const envelope = JSON.parse(out) as Envelope;
      assertOutputSchema(envelope);
      assert.equal(code === 0, envelope.ok, err);
      return envelope;
    };
    assert.deepEqual((await json("version", "install", OLD)).data, { version: OLD, already: false, activated: true });
    site.add(NEW, fakeBundle(NEW));
    site.index = { ...site.index, sequence: 11, channels: { latest: NEW } };
    site.sign();
    assert.deepEqual((await json("version", "update")).data, {
      version: NEW,
      already: false,
      activated: true,
      from: OLD,
    });
    assert.deepEqual((await json("version", "rollback")).data, { version: OLD, previous: NEW });
    assert.deepEqual((await json("version", "use", NEW)).data, { version: NEW, previous: OLD });
    assert.equal((await json("version", "which")).data.version, NEW);
    assert.deepEqual((await json("version", "list")).data.versions.map((v: { version: string }) => v.version), [
      OLD,
      NEW,
    ]);
    assert.deepEqual((await json("version", "prune")).data, { removed: [] });
    assert.deepEqual((await json("version", "uninstall", OLD)).data, { version: OLD, active: NEW });
    assert.deepEqual((await json("version", "use", "9.9.9")).diagnostics.map((d) => d.code), ["release.unknown"]);

    // Only a bundle installs itself: end_to_end_test.ts does it, and the operation's data is compared here.
    assert.deepEqual((await json("self", "install", "--yes")).diagnostics.map((d) => d.code), ["install.source"]);
    const edits = [{ file: "/home/ada/.profile", created: true, block: "PATH=…" }];
    const data = { version: OLD, bin: "/home/ada/.local/bin", edits };
    assertOutputSchema({ schemaVersion: 1, command: "self.install", ok: true, data, diagnostics: [] });
    const { state } = machinePaths({ env: { WAFT_HOME: join(home, "waft") }, os: "linux", home });
    mkdirSync(state, { recursive: true });
    assert.deepEqual((await json("self", "uninstall", "--yes")).diagnostics.map((d) => d.code), ["install.missing"]);
    assert.deepEqual((await json("self", "uninstall", "--yes", "--purge")).data.left, []);
    const all = Object.keys(OUTPUT_SCHEMAS).filter((command) => /^(?:self|version)\./.test(command));
    assert.deepEqual([...seenCommands].sort(), all.sort());
  } finally {
    await site.close();
    removeFolder(home);
  }
});
