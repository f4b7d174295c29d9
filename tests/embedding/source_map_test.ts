/** The frames of traps have the places of source maps: those in the module itself, and those that the program reads. */
import assert from "node:assert/strict";
import { type Module, NewEngine, TrapError } from "@waft/engine";
import { MAPPED_FRAMES, mappedModule, sourceMap } from "../support/mapped_module.ts";

const MAP = sourceMap();
const UNMAPPED = /^at inner \(wasm:.*:wasm-function\[0\]:0x1f\)$/;

/** The guest's frames in the stack of the trap. */
function frames(module: Module): string[] {
  const instance = module.instantiate();
  try {
    instance.call({}, "f");
  } catch (error) {
    assert.ok(error instanceof TrapError);
    return (error.stack ?? "").split("\n").slice(1, 3).map((line) => line.trim());
  } finally {
    instance.close();
  }
  return assert.fail("no trap");
}

for (const tier of ["optimizing", "baseline", "auto"] as const) {
  Deno.test(`a map that the program reads, once, at the first trap: ${tier}`, () => {
    const engine = NewEngine({ tier });
    const module = engine.compile(mappedModule(`./${tier}.wasm.map`));
    const addresses: string[] = [];
    module.setSourceMap((url) => {
      addresses.push(url);
      return MAP;
    });
    assert.deepEqual(addresses, []);
    assert.deepEqual(frames(module), MAPPED_FRAMES);
    assert.deepEqual(frames(module), MAPPED_FRAMES);
    assert.deepEqual(addresses, [`./${tier}.wasm.map`]);
    const loaded = engine.load(module.serialize());
    loaded.setSourceMap(() => MAP);
    assert.deepEqual(frames(loaded), MAPPED_FRAMES, "loaded from an artifact");
  });
}

Deno.test("a map in the module itself needs no reader", () => {
  for (
    const url of [
      `data:application/json;base64,${btoa(MAP)}`,
      `data:application/json;charset=utf-8;base64,${btoa(MAP)}`,
      `data:application/json,${encodeURIComponent(MAP)}`,
    ]
  ) {
    assert.deepEqual(frames(NewEngine().compile(mappedModule(url))), MAPPED_FRAMES);
  }
});

Deno.test("a module without a map, or with a damaged one, has its offsets", () => {
  const bad = ["", "{", "null", '{"mappings":"!","sources":[]}', undefined];
  for (const [k, text] of bad.entries()) {
    const module = NewEngine().compile(mappedModule(`${k}.map`));
    assert.match(frames(module)[0], UNMAPPED, "the map is not read");
    module.setSourceMap(() => text);
    assert.match(frames(module)[0], UNMAPPED);
    module.setSourceMap(() => MAP);
    assert.deepEqual(frames(module), MAPPED_FRAMES, "a reader replaces the one before");
  }
  for (const url of ["data:application/json;base64,%", "data:application/json,%", "data:text/plain,x", "data:,", ""]) {
    assert.match(frames(NewEngine().compile(mappedModule(url)))[0], UNMAPPED);
  }
  const module = NewEngine().compile(mappedModule("x"));
  assert.throws(() => module.setSourceMap("x" as never), /The reader of a source map must be a function, not "x"/);
});
