/**
 * From `init --full --kind plugin` to another user of the plugin, on the command line, against a registry on loopback.
 */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { withRegistry } from "../registry/test_registry.ts";
import { waft } from "./waft.ts";

const ID = "github.com/ada/greeter";

Deno.test({
  name:
    "a plugin as init makes it: its README's commands build and check it, it passes its test, is published, added and run",
  // The registry's sockets close a little later than the test.
  sanitizeResources: false,
  sanitizeOps: false,
  fn: () =>
    withRegistry(async (registry) => {
      const { token } = await registry.author("ada", ["github.com/ada"]);
      const home = mkdtempSync(join(tmpdir(), "waft-author-"));
      const plugin = join(home, "greeter");
      const user = join(home, "user");
      for (const directory of [plugin, user]) mkdirSync(directory);
      const env = { WAFT_REGISTRY: registry.url };
      const run = async (cwd: string, args: string[], more: { readonly [name: string]: string } = {}) => {
        const result = await waft(args, cwd, home, { ...env, ...more });
        assert.equal(result.code, 0, `waft ${args.join(" ")}\n${result.out}${result.err}`);
        return result.out;
      };
      try {
        await run(
          plugin,
          ["init", "--full", "--kind", "plugin", "--name", "Greeter", "--module", ID, "--description", "Greets."]
            .concat(["--license", "MIT", "--repository", "https://github.com/ada/greeter", "--yes"]),
        );
        const readme = readFileSync(join(plugin, "README.md"), "utf8");
        const block = /```sh\n([^]*?)```/.exec(readme)![1];
        const commands = block.trim().split("\n").map((line) => line.replace(/\s+#.*$/, "").split(" "));
        assert.deepEqual(commands.map(([program]) => program), ["waft", "waft", "waft"]);
        for (const [, ...args] of commands) await run(plugin, args);
        // Its test, as the README says: in a project that contains it.
        const trial = join(home, "trial");
        mkdirSync(trial);
        cpSync(plugin, join(trial, "greeter"), { recursive: true });
        await run(trial, ["init", "--quick"]);
        await run(trial, ["add", "./greeter", "--allow", "caller.memory.write"]);
        assert.equal(await run(trial, ["run", "greeter/test/guest.wat"]), "19\n");

        assert.match(
          await run(plugin, ["plugin", "publish"], { WAFT_TOKEN: token }),
          /github\.com\/ada\/greeter 0\.1\.0/,
        );
        const again = await run(plugin, ["plugin", "publish"], { WAFT_TOKEN: token });
        assert.match(again, /already|unchanged|same/i);

        await run(user, ["init", "--quick"]);
        await run(user, ["add", ID, "--allow", "caller.memory.write"]);
        assert.match(readFileSync(join(user, "waft.json"), "utf8"), /"github\.com\/ada\/greeter": "\^0\.1\.0"/);
        cpSync(join(plugin, "test", "guest.wat"), join(user, "guest.wat"));
        assert.equal(await run(user, ["run", "--locked", "--offline", "guest.wat"]), "19\n");
        assert.match(await run(user, ["plugin", "check"]), /passed/);
        const found = JSON.parse(await run(user, ["plugin", "list", "--json"])) as {
          data: { plugins: { id: string; state: string }[] };
        };
        assert.deepEqual(found.data.plugins.map(({ id, state }) => [id, state]), [[ID, "ok"]]);

        const yank = ["plugin", "yank", `${ID}@0.1.0`];
        const reason = ["--reason", "greets the wrong ones", "--severity", "broken"];
        assert.match(await run(plugin, [...yank, ...reason], { WAFT_TOKEN: token }), /^yanked .*wrong ones/);
        assert.match(await run(user, ["plugin", "check"]), /passed with 1 warning/);
        assert.match(await run(plugin, [...yank, "--undo"], { WAFT_TOKEN: token }), /un-yanked /);
      } finally {
        rmSync(home, { recursive: true, force: true });
      }
    }),
});
