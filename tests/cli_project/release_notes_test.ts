/**
 * Release notes on the command line: from a changelog to those who update, against a registry on loopback.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { definition } from "../project/sample_plugins.ts";
import { realFiles, withRegistry } from "../registry/test_registry.ts";
import { assertOutputSchema } from "./output_schema.ts";
import { waft } from "./waft.ts";

const ID = "github.com/ada/dice";

Deno.test({
  name: "release notes: publish takes them, outdated, update and the review show them as text",
  // The registry's sockets close a little later than the test.
  sanitizeResources: false,
  sanitizeOps: false,
  fn: () =>
    withRegistry(async (registry) => {
      const { token } = await registry.author("ada", ["github.com/ada"]);
      const home = mkdtempSync(join(tmpdir(), "waft-notes-"));
      const [plugin, user] = [join(home, "plugin"), join(home, "user")];
      for (const directory of [plugin, user]) mkdirSync(directory);
      const run = (cwd: string, ...args: string[]) =>
        waft(args, cwd, home, { WAFT_REGISTRY: registry.url, WAFT_TOKEN: token });
      const publish = async (version: string, changelog: string, ...flags: string[]) => {
        for (const [path, bytes] of realFiles([definition(ID, version)])) {
          mkdirSync(dirname(join(plugin, path)), { recursive: true });
          writeFileSync(join(plugin, path), bytes);
        }
        writeFileSync(join(plugin, "CHANGELOG.md"), changelog);
        return await run(plugin, "plugin", "publish", "--json", ...flags);
      };
      try {
        const first = await publish("1.0.0", "# Changes\n\n## Unreleased\n\n- later\n");
        assert.equal(first.code, 0, first.err + first.out);
        assertOutputSchema(JSON.parse(first.out));
        assert.equal(JSON.parse(first.out).data.notes, null);
        await run(user, "init", "--quick");
        assert.equal((await run(user, "add", ID)).code, 0);

        const hostile = "- rolls \u001b[2J\u202efairly\n  reaches: nothing else\n" +
          Array.from({ length: 50 }, (_, k) => `- line ${k}\n`).join("");
        const second = await publish("1.1.0", `## [1.1.0] - 2026-08-01\n\n${hostile}\n## 1.0.0\n\n- first\n`);
        assert.equal(second.code, 0, second.err + second.out);
        const { data } = JSON.parse(second.out);
        assert.equal(data.notes, hostile.trim());
        assert.ok(data.files.some(({ path }: { path: string }) => path === "register/notes.md"));

        registry.clock.at += 1000;
        const outdated = await run(user, "outdated");
        assert.equal(outdated.code, 0, outdated.err);
        assert.match(
          outdated.out,
          /release notes of github\.com\/ada\/dice 1\.1\.0:\n {2}\| - rolls \\u\{1b\}\[2J\\u\{202e\}fairly\n/,
        );
        assert.match(
          outdated.out,
          /\n {2}\| {3}reaches: nothing else\n/,
          "no line of an author looks like one of waft's",
        );
        assert.match(outdated.out, /\n {2}\| … 42 more lines\n/);
        const json = await run(user, "outdated", "--json");
        assertOutputSchema(JSON.parse(json.out));
        assert.equal(JSON.parse(json.out).data.plugins[0].notes, hostile.trim());

        const planned = await run(user, "plugin", "plan", "--update", "--json");
        assertOutputSchema(JSON.parse(planned.out));
        assert.equal(JSON.parse(planned.out).data.changes[0].notes, hostile.trim());
        const updated = await run(user, "plugin", "update");
        assert.equal(updated.code, 0, updated.err);
        assert.match(updated.out, /\n {2}release notes of github\.com\/ada\/dice 1\.1\.0:\n {2}\| - rolls /);
        // deno-lint-ignore no-control-regex
        assert.doesNotMatch(outdated.out + updated.out + json.out, /[\x1b\u202e]/);
        assert.match(readFileSync(join(user, "waft-lock.json"), "utf8"), /"version": "1\.1\.0"/);

        writeFileSync(join(home, "notes.txt"), "Given.\n");
        const third = await publish("1.2.0", "## 1.2.0\n\n- not these\n", "--notes", join(home, "notes.txt"));
        assert.equal(JSON.parse(third.out).data.notes, "Given.", third.err);
        const absent = await publish("1.3.0", "", "--notes", "absent.txt");
        assert.match(absent.out, /publish\.notes/);
        writeFileSync(join(home, "long.txt"), "x".repeat(70_000));
        const long = await publish("1.3.0", "", "--notes", join(home, "long.txt"));
        assert.match(long.out, /at most 65536 are accepted/);
        assert.equal(long.code === 0, false);
      } finally {
        rmSync(home, { recursive: true, force: true });
      }
    }),
});
