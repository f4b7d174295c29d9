/**
 * Code of the baseline kernel for arm64. The fixed bits of its instructions come from the rows of
 * engine/backend_arm64/, which tests/encode/arm64.txt compares with an assembler; here, the words that the kernel makes
 * of them are decoded again: every word of code is an instruction of a row, so no field has spilled into another.
 */
import assert from "node:assert/strict";
import { decode } from "../../engine/backend_arm64/disassemble.ts";
import { compileBodies } from "../../engine/baseline/compile_bodies.ts";
import { withKernel } from "../../engine/baseline/kernel_forms.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { MachineCode } from "../../engine/codegen/machine_code.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { moduleInterface } from "../../engine/translate/module_interface.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { COMPILED_FEATURES } from "../fuzz/compare.ts";
import { generateModules } from "../fuzz/generate_module.ts";

/** Compiles a module for arm64. With `all`, the code checks bounds, polls, charges fuel and is deterministic. */
function compile(binary: Uint8Array, all: boolean) {
  const features = featureSet();
  const valid = validateModule(decodeModule(binary), features, { bodies: false });
  const { layout, signatures } = moduleInterface(valid);
  const code = new MachineCode(valid.funcs.length, signatures.length);
  const options = {
    ...codeSettings({ explicitBounds: all, interruptible: all, fuel: all, deterministic: all }),
    stackFence: !all,
    cpu: new Set<string>(),
    features,
    constants: 0,
  };
  const uncovered = withKernel("arm64", (kernel) => compileBodies(kernel, valid, layout, options, code));
  return { uncovered, code, bodies: valid.funcs.length };
}

const LITERAL_LOAD = 0x9c;
const ADDRESS_OF_X16 = 0x10000010;

/** The indices of words that instructions refer to as data: vectors, and distances to the poll page. */
function dataWords(words: Int32Array): Set<number> {
  const data = new Set<number>();
  words.forEach((word, k) => {
    const target = k + ((word << 8) >> 13);
    if (word >>> 24 === LITERAL_LOAD) { for (let n = 0; n < 4; n++) data.add(target + n); }
    else if ((word & 0x9f00001f) === ADDRESS_OF_X16) data.add(target);
  });
  return data;
}

Deno.test("every word of baseline code for arm64 is an instruction", () => {
  const seen = new Set<number>();
  for (let seed = 0; seed < 120; seed++) {
    for (const binary of generateModules(seed, COMPILED_FEATURES)) {
      const { uncovered, code, bodies } = compile(binary, seed % 2 === 0);
      assert.deepEqual(uncovered, [], `seed ${seed}`);
      for (let k = 0; k < bodies; k++) {
        const bytes = code.bytes.slice(code.functionStart[k], code.functionEnd[k]);
        const words = new Int32Array(bytes.buffer, 0, bytes.length >> 2);
        const data = dataWords(words);
        words.forEach((word, at) => {
          if (data.has(at)) return;
          const decoded = decode(word);
          assert(decoded !== undefined, `seed ${seed}, function ${k}, word ${at}: ${(word >>> 0).toString(16)}`);
          seen.add(decoded.row);
        });
      }
    }
  }
  assert(seen.size > 250, `only ${seen.size} different instructions`);
});
