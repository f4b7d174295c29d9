/** Baseline code that is compiled at its place is the same as elsewhere, and no executable memory is lost. */
import assert from "node:assert/strict";
import { ARM64 } from "../../engine/backend_arm64/target.ts";
import { X64 } from "../../engine/backend_x64/target.ts";
import { CodeArena } from "../../engine/host/memory/code_arena.ts";
import { hostArchitecture } from "../../engine/host/cpu.ts";
import { currentHost } from "../../engine/host/current.ts";
import { compileModule, type CompileOptions } from "../../engine/compile/compile.ts";
import { NewEngine } from "../../engine/api/engine.ts";
import { WaftError } from "../../engine/base/errors.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { ImagePlace, resolvePolls } from "../../engine/link/image.ts";
import { realmStore } from "../../engine/runtime/realm_store.ts";
import { settingsOf } from "../../engine/api/settings.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { LARGE_CODE, manyLoops } from "../support/large_programs.ts";

const IS_LINUX = currentHost().os === "linux"; // elsewhere no chunk is opened

function optionsOf(storage?: CompileOptions["storage"]): CompileOptions {
  const { optimizations } = settingsOf({});
  const features = featureSet();
  return {
    target: hostArchitecture() === "arm64" ? ARM64 : X64,
    features,
    optimizations,
    settings: codeSettings(),
    cpu: new Set(),
    tier: "baseline",
    polls: true,
    storage,
  };
}

Deno.test({
  name: "code that is compiled at its place is the code that is copied there",
  ignore: !IS_LINUX,
  fn() {
    const { arena } = realmStore().thread;
    const binary = () => parseModule(manyLoops(2500));
    const elsewhere = compileModule(binary(), optionsOf());
    let address = 0;
    const place = new ImagePlace(arena);
    const open = (bytes: number) => {
      const chunk = place.open(bytes);
      address = chunk?.address ?? 0;
      return chunk;
    };
    const code = compileModule(binary(), optionsOf(open));
    assert(address !== 0 && code.storage !== undefined && code.tables.pollAt.length === 0);
    const expected = elsewhere.bytes.slice();
    assert(elsewhere.tables.pollAt.length > 2500);
    resolvePolls(expected, address, elsewhere.tables.pollAt, arena.pollPage);
    assert.deepEqual(code.bytes, expected);
    const { pollAt: _, ...tables } = code.tables;
    assert.deepEqual({ ...tables, pollAt: elsewhere.tables.pollAt }, elsewhere.tables);
    const image = place.place(code);
    assert.equal(image.base, address);
    place.release(); // has no effect any more
    assert.deepEqual(new Uint8Array(currentHost().view(image.base, image.size)), expected);
    arena.release(image.base, image.size);
  },
});

Deno.test("code that exceeds the memory at its place is compiled elsewhere", () => {
  const arena = new CodeArena(currentHost());
  const place = new ImagePlace(arena);
  const sizes: number[] = [];
  const open = (bytes: number) => {
    sizes.push(bytes);
    return place.open(bytes);
  };
  const code = compileModule(parseModule(LARGE_CODE), optionsOf(open));
  assert.equal(sizes.length, 1);
  assert(code.bytes.length > sizes[0], `${code.bytes.length} bytes of code fit into ${sizes[0]}`);
  assert.equal(code.storage, undefined);
  place.release();
  const pageSize = currentHost().pageSize;
  assert.equal(arena.allocate(1), arena.start + pageSize, "the memory is free again");
});

Deno.test("an invalid body leaves no open memory", () => {
  const { arena } = realmStore().thread;
  const LARGE = 3 << 20; // not aligned to large pages, which could hide a loss
  const free = arena.allocate(LARGE);
  arena.release(free, LARGE);
  const { bytes } = parseModule(manyLoops(2500).replace(/\)$/, "(func (result i32)))"));
  assert.throws(() => NewEngine().compile(bytes), WaftError);
  assert.equal(arena.allocate(LARGE), free);
  arena.release(free, LARGE);
});
