/** The examples of stack switching give the results that their headers show. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { NewEngine } from "../../engine/mod.ts";

const FOLDER = new URL("../../examples/stacks/", import.meta.url);
/** A command in a header, and its result. */
const COMMAND = /--invoke (\w+) examples\/stacks\/(\S+) (\d+) +→ (\d+)/g;

const engine = NewEngine({ features: { "stack-switching": true } });

for (const name of readdirSync(FOLDER)) {
  Deno.test(`examples/stacks/${name} returns what its header says`, () => {
    const text = readFileSync(new URL(name, FOLDER), "utf8");
    const commands = [...text.matchAll(COMMAND)];
    assert.ok(commands.length > 0);
    for (const [command, exported, file, argument, result] of commands) {
      assert.equal(file, name);
      const instance = engine.compile(text).instantiate();
      assert.equal(String(instance.call({}, exported, Number(argument))), result, command);
    }
  });
}
