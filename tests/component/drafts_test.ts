/** Draft interfaces of WASI: wasi:config, wasi:keyvalue, wasi:logging. In: fixtures/drafts.wat. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "../../component/mod.ts";
import { draftInterfaces, type DraftOptions } from "../../component/wasi/drafts.ts";

const FIXTURE = fileURLToPath(new URL("fixtures/drafts.wat", import.meta.url));
const text = readFileSync(FIXTURE, "utf8");
const engine = NewEngine();
const component = compileComponent(engine, text);
const start = (options: DraftOptions) => component.instantiate({}, draftInterfaces(options));

Deno.test("a component reads its configuration, logs, and stores values", () => {
  const messages: string[][] = [];
  const instance = start({
    config: { name: "Ada ä" },
    keyvalueBytes: 1000,
    log: (...message) => messages.push(message),
  });
  assert.equal(instance.call({}, "show"), "Ada ä");
  assert.deepEqual(messages, [["warn", "test", "Ada ä"]]);
});

Deno.test("interfaces that were not granted cannot be linked", () => {
  for (
    const [options, missing] of [
      [{}, /wasi:config[^]*wasi:logging[^]*wasi:keyvalue/],
      [{ config: {}, keyvalueBytes: 1 }, /missing:\s+wasi:logging\/logging[^\n]*log: [^\n]*$/],
    ] as const
  ) {
    assert.throws(() => start(options), missing);
  }
  const without = start({ config: Object.create({ name: "inherited" }), keyvalueBytes: 1000, log: () => {} });
  assert.throws(() => without.call({}, "show"), /unreachable/, "only own properties are values");
});

Deno.test("a store refuses what exceeds its size, and counts a value that replaces another once", () => {
  const instance = start({ config: {}, keyvalueBytes: 1000, log: () => {} });
  for (const bytes of [900, 900, 10]) assert.equal(instance.call({}, "fill", bytes), 0);
  assert.equal(instance.call({}, "fill", 1000), 1);
  assert.equal(instance.call({}, "fill", 900), 0);
});

Deno.test("functions of other types are not passed to the host", () => {
  const other = text.replace(
    '(param "key" string) (result (result (option string)',
    '(param "key" string) (result (result (option u32)',
  );
  const options = { config: {}, keyvalueBytes: 1, log: () => {} };
  assert.throws(() => compileComponent(engine, other).instantiate({}, draftInterfaces(options)), /wasi:config\/store/);
});
