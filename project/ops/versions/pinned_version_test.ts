/** The version that a project pins, and the resulting action. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { machinePaths } from "../../base/paths.ts";
import { pinnedVersion } from "./pinned_version.ts";

Deno.test("pinned version: the nearest manifest's engines decide, unless the user chose", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-pinned-"));
  try {
    const paths = machinePaths({ env: {}, os: "linux", home });
    for (const version of ["0.3.1", "0.4.0-nightly.1"]) {
      mkdirSync(join(paths.versions, version), { recursive: true });
      writeFileSync(
        join(paths.versions, version, "receipt.json"),
        JSON.stringify({ schemaVersion: 1, version, installedAt: "" }),
      );
    }
    const inner = join(home, "project", "src");
    mkdirSync(inner, { recursive: true });
    const ask = (manifest: string): void => writeFileSync(join(home, "project", "waft.json"), manifest);
    const found = async (args = ["run", "x"], env = {}): Promise<string | undefined> =>
      (await pinnedVersion(inner, args, "0.2.0", paths, env))?.version;
    const range = (text: string): string => JSON.stringify({ package: { engines: { waft: text } } });

    assert.equal(await found(), undefined);
    ask(range("^0.3.0"));
    assert.equal(await found(), "0.3.1");
    assert.equal(await found(["version", "list"]), undefined);
    assert.equal(await found(["--help"]), undefined);
    assert.equal(await found(["run"], { WAFT_RUNTIME: "0.2.0" }), undefined);
    ask(range(">=0.3.0"));
    assert.equal(await found(), "0.4.0-nightly.1", "pre-releases fit engines");
    ask(range("^0.2.0"));
    assert.equal(await found(), undefined);
    ask(range("^9.0.0"));
    await assert.rejects(found(), /incompatible\.engine: this project asks for waft "\^9\.0\.0"; 0\.2\.0 is running/);
    for (
      const broken of [
        "{",
        "null",
        "[]",
        range("((("),
        '{"package":{"engines":7}}',
        '{"package":{"engines":{"waft":7}}}',
      ]
    ) {
      ask(broken);
      assert.equal(await found(), undefined, "the command reports the fault");
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
