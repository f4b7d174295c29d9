/**
 * Copies of the compiler's machine code: a checksum by machine code that is the one of artifacts, and damaged copies,
 * none of which is run: modules move up by other means.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checksum } from "../../engine/artifact/checksum.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { hostBackend } from "../../engine/compile/backends.ts";
import { cpuFeatures } from "../../engine/host/cpu.ts";
import { currentHost } from "../../engine/host/current.ts";
import { PROT } from "../../engine/host/host.ts";
import type { NativeCompiler } from "../../engine/portable/native_code.ts";
import { useNativeCompiler } from "../../engine/portable/late_native.ts";
import { realmStore } from "../../engine/runtime/realm_store.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { hasChecksum } from "../../engine/tiers/native_checksum.ts";
import { NativeJobs } from "../../engine/tiers/native_job.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { NewEngine } from "@waft/engine";

Deno.test("machine code computes the checksum of artifacts", () => {
  const { thread } = realmStore();
  const host = currentHost();
  const address = host.reserve(host.pageSize, PROT.READ | PROT.WRITE);
  const bytes = new Uint8Array(host.view(address, host.pageSize));
  bytes.forEach((_, k) => bytes[k] = (k * 0x9e3779b1) >>> 24);
  const sum = new Int32Array(4);
  for (const length of [16, 32, 48, 1024, host.pageSize]) {
    checksum(bytes.subarray(0, length), sum);
    assert.ok(hasChecksum(thread, address, length, [...sum]), `${length} bytes`);
    for (let lane = 0; lane < 4; lane++) {
      const other = [...sum];
      other[lane] ^= 1 << (lane * 10);
      assert.ok(!hasChecksum(thread, address, length, other), `another word ${lane}`);
    }
    for (const at of [0, 7, length - 1]) {
      bytes[at] ^= 0x40;
      assert.ok(!hasChecksum(thread, address, length, [...sum]), `damage at ${at} of ${length} bytes`);
      bytes[at] ^= 0x40;
    }
  }
  host.release(address, host.pageSize);
});

Deno.test("no damaged copy of the compiler is run, and none is read twice", () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-native-"));
  const file = join(folder, "image.bin");
  writeFileSync(file, new Uint8Array(4096).fill(0xcc));
  let reads = 0;
  const zeros = { start: 0, thunk: 0 };
  const native: NativeCompiler = {
    images: () => [new Uint8Array(64), new Uint8Array(4096).fill(0xcc)].map((copy) => (reads++, copy)),
    file,
    imageBytes: 4096,
    checksum: [1, 2, 3, 4],
    codeBytes: 4096,
    dataBytes: 0,
    contextBytes: 256,
    memory: 64,
    globals: [],
    typeIdsAt: 128,
    typeIds: [],
    table: 96,
    elements: [],
    records: [],
    start: zeros,
    exports: {},
  };
  useNativeCompiler(() => native);
  const { bytes } = NewEngine().parse(`(module (func (export "f") (result i32) (i32.const 1)))`);
  const valid = validateModule(decodeModule(bytes), featureSet(), { bodies: false });
  const options = {
    target: hostBackend(),
    features: featureSet(),
    optimizations: optimizationSet(),
    settings: codeSettings(),
    cpu: cpuFeatures(currentHost()),
  };
  for (let module = 0; module < 2; module++) {
    const jobs = new NativeJobs(realmStore().thread, valid, options);
    assert.equal(jobs.state, module === 0 ? "possible" : "loaded");
    assert.equal(jobs.start(undefined, 0, () => assert.fail("no job has begun")), undefined);
    assert.equal(jobs.state, "absent");
  }
  assert.equal(reads, 2);
  rmSync(folder, { recursive: true });
});
