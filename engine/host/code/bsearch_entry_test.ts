/**
 * Machine code entered through bsearch, on this system's own C library: parameters and results of every type, bound
 * calls, and the whole engine in a process whose record of the system asks for this way.
 */
import { deepEqual, equal, throws } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { CHILD_TIMEOUT, runtimeCommand } from "../../../tests/support/host_arguments.ts";
import { denoFfi } from "../runtimes/deno.ts";
import type { Host } from "../host.ts";
import { posixHost } from "../systems/posix_host.ts";
import { SYSTEMS } from "../systems/systems.ts";

const isX64 = Deno.build.arch === "x86_64";
const ignore = Deno.build.os !== "linux" || !isX64;

function host(): Host {
  return posixHost(denoFfi(), { ...SYSTEMS.linux, entry: "bsearch" });
}

Deno.test({
  name: "functions entered through bsearch receive every parameter and return every type",
  ignore,
  fn: () => {
    // sum: lea rax, [rdi+rsi]; add rax, rdx; add rax, rcx; add rax, r8; add rax, r9; ret
    const sum = [0x48, 0x8d, 0x04, 0x37, 0x48, 0x01, 0xd0, 0x48, 0x01, 0xc8, 0x4c, 0x01, 0xc0, 0x4c, 0x01, 0xc8, 0xc3];
    const scale = [0xf2, 0x0f, 0x59, 0xc1, 0xc3]; // mulsd xmm0, xmm1; ret
    const scale32 = [0xf3, 0x0f, 0x59, 0xc1, 0xc3]; // mulss xmm0, xmm1; ret
    const negate = [0x89, 0xf8, 0xf7, 0xd8, 0xc3]; // mov eax, edi; neg eax; ret
    const text = Uint8Array.from([...sum, ...scale, ...scale32, ...negate]);
    const native = host().nativeLibrary(text, {
      sum: { offset: 0, params: ["i64", "i64", "i64", "i64", "i64", "i64"], result: "i64" },
      scale: { offset: sum.length, params: ["f64", "f64"], result: "f64" },
      scale32: { offset: sum.length + scale.length, params: ["f32", "f32"], result: "f32" },
      negate: { offset: sum.length + scale.length + scale32.length, params: ["i32"], result: "i32" },
    });
    equal(native.sum(1n, 20n, 300n, 4000n, 50000n, -1n << 40n), 54321n - (1n << 40n));
    equal(native.scale(1.5, -3), -4.5);
    equal(native.scale32(0.5, 3), 1.5);
    equal(native.negate(2147483647), -2147483647);
    equal(native.negate(-5), 5);
  },
});

Deno.test({
  name: "a bound call passes its pointer and returns an i32",
  ignore,
  fn: () => {
    const here = host();
    const at = here.reserve(here.pageSize, 3);
    const words = new Int32Array(here.view(at, 16));
    // count: inc dword [rdi]; mov eax, [rdi]; ret. back: dec dword [rdi]; mov eax, -7; ret
    const text = Uint8Array.of(0xff, 0x07, 0x8b, 0x07, 0xc3, 0xff, 0x0f, 0xb8, 0xf9, 0xff, 0xff, 0xff, 0xc3);
    const { count, back } = here.boundCalls(text, { count: 0, back: 5 }, at);
    equal(count(), 1);
    equal(count(), 2);
    equal(back(), -7);
    equal(words[0], 1);
    // A pointer for each function, by the loader as well.
    for (const entry of [here, posixHost(denoFfi())]) {
      const calls = entry.boundCalls(text, { count: 0, back: 5 }, { count: at + 4, back: at + 8 });
      calls.count();
      calls.back();
    }
    deepEqual([...words], [1, 2, -2, 0]);
  },
});

Deno.test({
  name: "more parameters than registers are refused",
  ignore,
  fn: () => {
    const params = Array.from({ length: 7 }, () => "i64" as const);
    throws(
      () => host().nativeLibrary(Uint8Array.of(0xc3), { f: { offset: 0, params, result: "void" } }),
      /at most 6 integers/,
    );
  },
});

Deno.test({
  name: "the engine runs, traps and meets deadlines when it enters machine code through bsearch",
  ignore: Deno.build.os !== "linux",
  fn: () => {
    const program = `
      import { SYSTEMS } from "${new URL("../systems/systems.ts", import.meta.url).href}";
      SYSTEMS.linux.entry = "bsearch";
      const { NewEngine } = await import("${new URL("../../mod.ts", import.meta.url).href}");
      const { currentHost } = await import("${new URL("../current.ts", import.meta.url).href}");
      if (currentHost().system.entry !== "bsearch") throw new Error("not this way");
      const text = '(module (import "h" "twice" (func $twice (param i32) (result i32))) (memory 1)' +
        ' (func (export "f") (param i32) (result i32) (i32.add (call $twice (local.get 0)) (i32.const 1)))' +
        ' (func (export "bad") (result i32) (i32.load (i32.const -4))) (func (export "spin") (loop (br 0))))';
      const instance = NewEngine({ interruptible: true }).compile(text).instantiate({}, { h: { twice: (n) => 2 * n } });
      const caught = (act) => { try { act(); return "none"; } catch (error) { return error.code; } };
      console.log(instance.call({}, "f", 20), caught(() => instance.call({}, "bad")),
        caught(() => instance.call({ deadline: 30 }, "spin")), instance.call({}, "f", 1));
    `;
    const [command, args] = runtimeCommand(["run", "-A", "--no-check", "-"]);
    const { stdout, stderr } = spawnSync(command, args, {
      input: program,
      encoding: "utf8",
      timeout: CHILD_TIMEOUT,
      env: { ...Deno.env.toObject(), NO_COLOR: "1" },
    });
    equal(`${stdout}${stderr}`, "41 memory-out-of-bounds interrupted 3\n");
  },
});
