/**
 * Compilation is re-entrant: compiling a module during the compilation of another one changes neither. The hook is the
 * statistics, which every stage updates: each count compiles another module for another target.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { ARM64 } from "../../engine/backend_arm64/target.ts";
import { X64 } from "../../engine/backend_x64/target.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import type { Target } from "../../engine/codegen/target.ts";
import { compileModule } from "../../engine/compile/compile.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";

function compile(target: Target, file: string): Uint8Array {
  const module = decodeModule(readFileSync(new URL(`../../bench/wasm/${file}`, import.meta.url)));
  return compileModule(module, {
    target,
    features: featureSet(),
    optimizations: optimizationSet(),
    settings: codeSettings(),
    cpu: new Set(["avx", "bmi2"]),
  }).bytes;
}

/** `target`, but with `nested` called at the first count of every `step`. */
function hooked(target: Target, step: number, nested: () => void): Target {
  return {
    ...target,
    emitStubs(context, code) {
      const { statistics } = context;
      const count = statistics.count.bind(statistics);
      let counts = 0;
      statistics.count = (key, times) => {
        if (counts++ % step === 0) nested();
        count(key, times);
      };
      target.emitStubs(context, code);
    },
  };
}

for (const target of [X64, ARM64]) {
  Deno.test(`compileModule() for ${target.name} may be entered again at any count`, () => {
    const outer = compile(target, "json.wasm");
    const inner = [compile(target, "heap_paths.wasm"), compile(target === X64 ? ARM64 : X64, "heap_paths.wasm")];
    let entered = 0;
    const nested = () => {
      const other = entered++ % 2 === 0 ? target : target === X64 ? ARM64 : X64;
      assert.deepEqual(compile(other, "heap_paths.wasm"), inner[other === target ? 0 : 1]);
    };
    assert.deepEqual(compile(hooked(target, 2, nested), "json.wasm"), outer);
    assert(entered > 20, `the hook ran ${entered} times only`);
  });
}
