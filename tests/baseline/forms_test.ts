/** The kernel generates the same code as TypeScript, as WebAssembly and as machine code. */
import assert from "node:assert/strict";
import { fromBase64 } from "../../engine/base/base64.ts";
import { compileBodies } from "../../engine/baseline/compile_bodies.ts";
import { OPCODE_TABLE } from "../../engine/baseline/generated/opcode_table.ts";
import { type Kernel, withKernel } from "../../engine/baseline/kernel_forms.ts";
import { sourceKernel } from "../../engine/baseline/source_kernel.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { MachineCode } from "../../engine/codegen/machine_code.ts";
import { featureSet } from "../../engine/features.ts";
import { moduleInterface } from "../../engine/translate/module_interface.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { COMPILED_FEATURES } from "../fuzz/compare.ts";
import { generateModules } from "../fuzz/generate_module.ts";
import { hostArchitecture } from "../../engine/host/cpu.ts";
import { nativeKernels } from "../../engine/native_kernel.ts";
import { realmStore } from "../../engine/engine.ts";
import { nativeKernel } from "../../scripts/build_native_kernel.ts";

/** The complete output for a module. */
function output(kernel: Kernel, binary: Uint8Array, explicitBounds: boolean) {
  const features = featureSet();
  const valid = validateModule(decodeModule(binary), features, { bodies: false });
  const { layout, signatures } = moduleInterface(valid);
  const code = new MachineCode(valid.funcs.length, signatures.length);
  const cpu = new Set(explicitBounds ? [] : ["popcnt", "bmi2", "lzcnt", "bmi1"]);
  const options = {
    explicitBounds,
    stackFence: !explicitBounds,
    interruptible: explicitBounds,
    fuel: explicitBounds,
    deterministic: explicitBounds,
    cpu,
    features,
    constants: 0,
  };
  const uncovered = compileBodies(kernel, valid, layout, options, code);
  const { bytes, length, functionStart, functionEnd, functionFrame, callRows, trapRows, relocAt, relocTarget } = code;
  const words = [functionStart, functionEnd, functionFrame, callRows, trapRows].map((column) => [...column]);
  return { uncovered, bytes: bytes.slice(0, length), words, relocAt, relocTarget, used: valid.usedFeatures };
}

Deno.test("the kernel generates the same code as TypeScript and as WebAssembly", () => {
  const source = sourceKernel(fromBase64(OPCODE_TABLE));
  let codeBytes = 0;
  for (let seed = 0; seed < 150; seed++) {
    for (const binary of generateModules(seed, COMPILED_FEATURES)) {
      const explicit = seed % 2 === 0;
      const expected = output(source, binary, explicit);
      assert.deepEqual(withKernel("x64", (kernel) => output(kernel, binary, explicit)), expected, `seed ${seed}`);
      codeBytes += expected.bytes.length;
    }
  }
  assert(codeBytes > 100_000, `only ${codeBytes} bytes of code`);
});

Deno.test("the kernel generates the same code as machine code", async () => {
  const arch = hostArchitecture();
  const make = nativeKernels(() => realmStore().thread);
  const native = await nativeKernel(arch);
  let kernel = make(native);
  for (let seed = 0; seed < 150; seed++) {
    if (seed % 50 === 49) {
      kernel?.release?.();
      kernel = make(native);
    }
    assert(kernel !== undefined);
    for (const binary of generateModules(seed, COMPILED_FEATURES)) {
      const explicit = seed % 2 === 0;
      const expected = withKernel(arch, (each) => output(each, binary, explicit));
      assert.deepEqual(output(kernel, binary, explicit), expected, `seed ${seed}`);
    }
  }
  kernel?.release?.();
});

Deno.test("damaged machine code of the kernel is not used", async () => {
  const native = await nativeKernel(hostArchitecture());
  const make = (code: string) => nativeKernels(() => realmStore().thread)({ ...native, code });
  assert.equal(make(native.code.slice(0, -8)), undefined);
  const kernel = make(native.code);
  assert(kernel !== undefined);
  kernel.release?.();
});
