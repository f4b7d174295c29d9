/**
 * Traps report file, line and column when the module has DWARF line tables. The modules are built from dwarf/trap.c
 * with `clang --target=wasm32 -gdwarf-N -O1 -nostdlib -Wl,--no-entry -fdebug-prefix-map=$PWD=/src
 * -fdebug-compilation-dir=/src`.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { decodeModule } from "../../engine/binary/decode.ts";
import { type Module, NewEngine, TrapError } from "../../engine/mod.ts";
import { debugLines } from "../../engine/runtime/traps/debug_lines.ts";
import { metadataOf } from "../../engine/artifact/module_metadata.ts";
import type { CustomSection } from "../../engine/wasm/module.ts";

function read(version: number): Uint8Array {
  return new Uint8Array(readFileSync(new URL(`./dwarf/dwarf${version}.wasm`, import.meta.url)));
}

function places(module: Module, name: string, ...args: number[]): string[] {
  const instance = module.instantiate();
  try {
    instance.call({}, name, ...args);
  } catch (error) {
    assert(error instanceof TrapError);
    return error.frames.map(({ funcName, file, line, column }) => `${funcName} ${file}:${line}:${column}`);
  } finally {
    instance.close();
  }
  return assert.fail("no trap");
}

for (const [version, root] of [[4, ""], [5, "/src/"]] as const) {
  const header = `${root}./trap.h`;
  const source = `${root}trap.c`;
  Deno.test(`DWARF ${version}: traps have files, lines and columns`, () => {
    const engine = NewEngine();
    const module = engine.compile(read(version));
    const divided = [`middle ${header}:2:13`, `divide ${source}:12:10`];
    assert.deepEqual(places(module, "divide", 2, 0), divided);
    assert.deepEqual(places(module, "stop", 3), [`stop ${source}:16:5`]);
    assert.deepEqual(places(engine.load(module.serialize()), "divide", 2, 0), divided, "loaded from an artifact");
    assert.deepEqual(
      places(NewEngine({ optimizations: { inline: false } }).compile(read(version)), "divide", 2, 0),
      divided,
    );
  });

  Deno.test(`DWARF ${version}: damaged line tables give no error`, () => {
    const { customs } = decodeModule(read(version));
    const codeEnd = read(version).length - metadataOf(read(version)).codeOffset;
    let seed = version;
    const random = () => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) >>> 8;
    const look = (sections: CustomSection[]) => {
      const lines = debugLines(sections);
      for (let at = 0; lines !== undefined && at < codeEnd; at += 7) lines(at);
    };
    const at = customs.findIndex(({ name }) => name === ".debug_line");
    const section = customs[at];
    const withBytes = (bytes: Uint8Array) => customs.map((custom, k) => k === at ? { ...custom, bytes } : custom);
    for (let length = 0; length <= section.bytes.length; length++) look(withBytes(section.bytes.slice(0, length)));
    for (let k = 0; k < 3000; k++) {
      const bytes = section.bytes.slice();
      for (let n = 0; n <= k % 4; n++) bytes[random() % bytes.length] = random();
      look(withBytes(bytes));
      look(
        customs.map((custom) =>
          custom.name.startsWith(".debug_") && custom !== section
            ? { ...custom, bytes: custom.bytes.slice(0, random() % (custom.bytes.length + 1)) }
            : custom
        ),
      );
    }
  });
}

Deno.test("code without line tables has offsets only", () => {
  assert.equal(debugLines([]), undefined);
  const lines = debugLines(decodeModule(read(4)).customs)!;
  assert.equal(lines(0), undefined);
  assert.equal(lines(0x11), undefined, "between functions");
  assert.deepEqual(lines(0x31), { file: "./trap.h", line: 2, column: 13 });
  assert.equal(lines(1e9), undefined);
});
