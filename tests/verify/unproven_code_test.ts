/**
 * The verifier on machine code written by hand. Each row has code that may leave its sandbox, or make the handler of
 * faults do so, and the same code without the fault. The verifier refuses the first for the given reason and proves the
 * second.
 */
import { equal } from "node:assert/strict";
import { OPTIMIZING_ARM64 as ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { OPTIMIZING_X64 as X64 } from "../../engine/backend_x64/optimizing_target.ts";
import { BUILTIN } from "../../engine/abi/builtins.ts";
import { RECORD, THREAD } from "../../engine/abi/context_layout.ts";
import { STUB } from "../../engine/codegen/machine_code.ts";
import { compileModule, prepareBodyCompiler, stubContext } from "../../engine/compile/compile.ts";
import type { CompileOptions } from "../../engine/compile/compile_options.ts";
import { NewEngine } from "../../engine/api/engine.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { TRAP } from "../../engine/base/traps.ts";
import { REASON } from "../../engine/verify/analysis.ts";
import type { MachineModule } from "../../engine/verify/machine_module.ts";
import { verifyCode } from "../../engine/verify/verify_code.ts";
import { machineModuleOf, machineOf } from "../../engine/compile/verify_module.ts";

await prepareBodyCompiler("x64");
await prepareBodyCompiler("arm64");

/**
 * One fault. Code is hexadecimal, as llvm-mc assembles it. Braces hold words that depend on the image: the distances
 * to the function itself, to the stub of a trap and to that of a builtin, the place of a displacement to the poll page,
 * and offsets in the context. Parameters are in rax, rcx, rdx, and in x0, x1, x2.
 */
interface Row {
  readonly name: string;
  readonly arch: "x64" | "arm64";
  /** A module whose only function, of which the body is left out, has the signature of the code. */
  readonly module: string;
  /** Memory 0 has guard pages if it has 32-bit addresses; default: its bounds are explicit. */
  readonly isGuarded?: true;
  /** Bytes of the stack that calls leave; default: 0. */
  readonly frame?: number;
  readonly refused: string;
  readonly reason: string;
  readonly proven: string;
}

const ROWS: readonly Row[] = [
  {
    name: "two tests of a reference, of which both have not succeeded",
    arch: "x64",
    module: "(func (param anyref) (result eqref))",
    // mov rdx, rax; and edx, 3; cmp edx, 2; setne dl; movzx edx, dl; xor edi, edi; test rax, rax; setne dil;
    // test edx, edi; je over; xor eax, eax; over: ret
    refused: "4889c283e20383fa020f95c20fb6d231ff4885c0400f95c785fa740231c0c3",
    // mov rdx, rax; and edx, 3; cmp edx, 2; setne dl; movzx edx, dl; xor edi, edi; test rax, rax; setne dil;
    // test edx, edi; jne over; xor eax, eax; over: ret
    proven: "4889c283e20383fa020f95c20fb6d231ff4885c0400f95c785fa750231c0c3",
    reason: REASON.REFERENCE,
  },
  {
    name: "a number of which another bit than the lowest was tested, as an integer reference",
    arch: "x64",
    module: "(func (param i32) (result (ref i31)))",
    // test al, 2; jne over; mov eax, 1; over: ret
    refused: "f6c0027505b801000000c3",
    // test al, 1; jne over; mov eax, 1; over: ret
    proven: "f6c0017505b801000000c3",
    reason: REASON.REFERENCE,
  },
  {
    name: "two tests of a reference, of which one has succeeded for null",
    arch: "x64",
    module: "(func (param eqref) (result (ref eq)))",
    // mov rdx, rax; and edx, 3; cmp edx, 2; setne dl; movzx edx, dl; xor edi, edi; test rax, rax; sete dil;
    // test edx, edi; jne over; mov eax, 1; over: ret
    refused: "4889c283e20383fa020f95c20fb6d231ff4885c0400f94c785fa7505b801000000c3",
    // mov rdx, rax; and edx, 3; cmp edx, 2; setne dl; movzx edx, dl; xor edi, edi; test rax, rax; setne dil;
    // test edx, edi; jne over; mov eax, 1; over: ret
    proven: "4889c283e20383fa020f95c20fb6d231ff4885c0400f95c785fa7505b801000000c3",
    reason: REASON.REFERENCE,
  },
  {
    name: "a test that a reference has the bits of an integer, in place of those of the host's",
    arch: "x64",
    module: "(func (param anyref) (result eqref))",
    // mov rdx, rax; and edx, 3; cmp edx, 1; setne dl; movzx edx, dl; test edx, edx; jne over; xor eax, eax; over: ret
    refused: "4889c283e20383fa010f95c20fb6d285d2750231c0c3",
    // mov rdx, rax; and edx, 3; cmp edx, 2; setne dl; movzx edx, dl; test edx, edx; jne over; xor eax, eax; over: ret
    proven: "4889c283e20383fa020f95c20fb6d285d2750231c0c3",
    reason: REASON.REFERENCE,
  },
  {
    name: "a frame that LEA makes larger than the stack check allows",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64))",
    // lea rsp, [rsp - 1048576]; lea rsp, [rsp + 1048576]; ret
    refused: "488da4240000f0ff488da42400001000c3",
    // lea rsp, [rsp - 512]; lea rsp, [rsp + 512]; ret
    proven: "488da42400feffff488da42400020000c3",
    reason: REASON.STACK_DEPTH,
  },
  {
    name: "a slot that was below the stack pointer for a while",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64))",
    // sub rsp, 8; mov qword ptr [rsp], 0; add rsp, 8; sub rsp, 8; mov rax, [rsp]; mov eax, [rbx + rax]; add rsp, 8;
    // ret
    refused: "4883ec0848c70424000000004883c4084883ec08488b04248b04034883c408c3",
    // sub rsp, 8; mov qword ptr [rsp], 0; mov rax, [rsp]; mov eax, [rbx + rax]; add rsp, 8; ret
    proven: "4883ec0848c7042400000000488b04248b04034883c408c3",
    reason: REASON.MEMORY,
  },
  {
    name: "two values of the stack pointer",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64))",
    // mov rax, rsp; sub rsp, 16; mov rcx, rsp; add rsp, 16; cmp rax, r14; jae trap; movzx ecx, byte ptr [rbx + rcx];
    // ret
    refused: "4889e04883ec104889e14883c4104c39f073050fb60c0bc3e8{trap}",
    // mov rax, rsp; mov rcx, rsp; cmp rax, r14; jae trap; movzx ecx, byte ptr [rbx + rcx]; ret
    proven: "4889e04889e14c39f073050fb60c0bc3e8{trap}",
    reason: REASON.MEMORY,
  },
  {
    name: "an address on the stack from before a tail frame was found",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64))",
    // mov rdx, rsp; lea rdx, [rsp]; mov rcx, [rsp]; mov r11, [r15 + 56]; cmp r11, rcx; jne trap; mov rax, [rdx - 8];
    // mov rax, [rax + 24]; add rsp, 16; ret
    refused: "4889e2488d1424488b0c244d8b5f384939cb750d488b42f8488b40184883c410c3e8{trap}",
    // mov rcx, [rsp]; mov r11, [r15 + 56]; cmp r11, rcx; jne trap; mov rax, [rsp + 8]; mov rax, [rax + 24]; add rsp,
    // 16; ret
    proven: "488b0c244d8b5f384939cb750e488b442408488b40184883c410c3e8{trap}",
    reason: REASON.ADDRESS,
  },
  {
    name: "a stack pointer that is cut to 32 bits",
    arch: "arm64",
    module: "(memory 1) (func (param i64 i64))",
    // sub sp, sp, #16; add wsp, wsp, #16; ret
    refused: "ff4300d1ff430011c0035fd6",
    // sub sp, sp, #16; add sp, sp, #16; ret
    proven: "ff4300d1ff430091c0035fd6",
    reason: REASON.STACK_POINTER,
  },
  {
    name: "a stack pointer that is cut to 32 bits by a register",
    arch: "arm64",
    module: "(memory 1) (func (param i64 i64))",
    // mov w9, #16; sub wsp, wsp, w9, uxtw; add sp, sp, #16; ret
    refused: "09028052ff43294bff430091c0035fd6",
    // mov w9, #16; sub sp, sp, w9, uxtw; add sp, sp, #16; ret
    proven: "09028052ff4329cbff430091c0035fd6",
    reason: REASON.STACK_POINTER,
  },
  {
    name: "flags that a difference from the stack pointer sets",
    arch: "arm64",
    module: "(memory 1) (func (param i64 i64))",
    // stp x9, x30, [sp, #-16]; cmp x0, x27; subs x3, sp, #16; b.hs trap; ldrb w2, [x26, x0]; ldp x9, x30, [sp], #16;
    // ret
    refused: "e97bbfa91f001bebe34300f182000054426b6038e97bc1a8c0035fd6{trap}",
    // stp x9, x30, [sp, #-16]; cmp x0, x27; sub x3, sp, #16; b.hs trap; ldrb w2, [x26, x0]; ldp x9, x30, [sp], #16;
    // ret
    proven: "e97bbfa91f001bebe34300d182000054426b6038e97bc1a8c0035fd6{trap}",
    reason: REASON.MEMORY,
  },
  {
    name: "a shift between a sum and the branch on its carry",
    arch: "arm64",
    module: "(memory 1) (func (param i64 i64))",
    // stp x9, x30, [sp, #-16]; adds x3, x0, #16; lsr x4, x1, #32; b.hs trap; cmp x1, x27; b.hs trap; ldrb w2, [x26,
    // x3]; ldp x9, x30, [sp], #16; ret
    refused: "e97bbfa9034000b124fc60d3c20000543f001beb82000054426b6338e97bc1a8c0035fd6{trap}",
    // stp x9, x30, [sp, #-16]; adds x3, x0, #16; lsr x4, x1, #32; b.hs trap; cmp x3, x27; b.hs trap; ldrb w2, [x26,
    // x3]; ldp x9, x30, [sp], #16; ret
    proven: "e97bbfa9034000b124fc60d3c20000547f001beb82000054426b6338e97bc1a8c0035fd6{trap}",
    reason: REASON.MEMORY,
  },
  {
    name: "flags of a conditional compare, which are no shift",
    arch: "arm64",
    module: "(memory 0) (func (param i64 i64))",
    // stp x9, x30, [sp, #-16]; mov x1, #65536; cmp x0, #5; ccmp x27, x1, #1, eq; b.lo trap; mov x5, #65536; ldrb w2,
    // [x26, x5]; ldp x9, x30, [sp], #16; ret
    refused: "e97bbfa92100a0d21f1400f1610341faa30000542500a0d2426b6538e97bc1a8c0035fd6{trap}",
    // stp x9, x30, [sp, #-16]; mov x1, #65536; cmp x0, #5; ccmp x27, x1, #1, eq; b.lo trap; mov x5, #65535; ldrb w2,
    // [x26, x5]; ldp x9, x30, [sp], #16; ret
    proven: "e97bbfa92100a0d21f1400f1610341faa3000054e5ff9fd2426b6538e97bc1a8c0035fd6{trap}",
    reason: REASON.MEMORY,
  },
  {
    name: "half of a reference",
    arch: "x64",
    module: "(type $s (struct (field (mut i32)))) (func (param (ref null $s) (ref null $s) i32) (result i32))",
    // test edx, edx; cmovne eax, ecx; mov eax, [rax + 8]; ret
    refused: "85d20f45c18b4008c3",
    // test edx, edx; cmovne rax, rcx; mov eax, [rax + 8]; ret
    proven: "85d2480f45c18b4008c3",
    reason: REASON.ADDRESS,
  },
  {
    name: "a difference of 32 bits from a larger number",
    arch: "x64",
    module: "(memory i64 1) (func (param i64 i64))",
    // movabs rax, 0x200000000; mov ecx, 1; sub eax, ecx; cmp rax, r14; jae trap; movabs rcx, 0x100000000; movzx edx,
    // byte ptr [rbx + rcx]; ret
    refused: "48b80000000002000000b90100000029c84c39f0730f48b900000000010000000fb6140bc3e8{trap}",
    // movabs rax, 0x200000000; mov ecx, 1; sub rax, rcx; cmp rax, r14; jae trap; movabs rcx, 0x100000000; movzx edx,
    // byte ptr [rbx + rcx]; ret
    proven: "48b80000000002000000b9010000004829c84c39f0730f48b900000000010000000fb6140bc3e8{trap}",
    reason: REASON.MEMORY,
  },
  {
    name: "a number whose upper half a shift by 0 clears",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64))",
    // movabs rax, 0x100000000; shl eax, 0; cmp eax, 5; jb trap; mov eax, [rcx]; ret
    refused: "48b80000000001000000c1e00083f80572038b01c3e8{trap}",
    // movabs rax, 0x100000000; shl eax, 0; cmp eax, 5; jb trap; mov eax, [rbx]; ret
    proven: "48b80000000001000000c1e00083f80572038b03c3e8{trap}",
    reason: REASON.ADDRESS,
  },
  {
    name: "a slot that is written on one of two paths",
    arch: "x64",
    module: "(memory 1) (func (param i64 i32))",
    // sub rsp, 8; test ecx, ecx; je 3f; mov [rsp], rax; 2: cmp rax, r14; jae trap; mov rdx, [rsp]; movzx edx, byte ptr
    // [rbx + rdx]; add rsp, 8; ret; 3: nop; jmp 2b
    refused: "4883ec0885c9741b488904244c39f0730d488b14240fb614134883c408c3e8{trap}90ebe6",
    // sub rsp, 8; test ecx, ecx; je 3f; mov [rsp], rax; 2: cmp rax, r14; jae trap; mov rdx, [rsp]; movzx edx, byte ptr
    // [rbx + rdx]; add rsp, 8; ret; 3: mov [rsp], rax; jmp 2b
    proven: "4883ec0885c9741b488904244c39f0730d488b14240fb614134883c408c3e8{trap}48890424ebe3",
    reason: REASON.MEMORY,
  },
  {
    name: "bits of a tag under different masks",
    arch: "x64",
    module: "(func (param anyref i32) (result i31ref))",
    // test ecx, ecx; je 3f; mov rdx, rax; and edx, 1; jmp 4f; 3: mov rdx, rax; and edx, 3; 4: cmp edx, 0; je trap; ret
    refused: "85c974084889c283e201eb064889c283e20383fa007401c3e8{trap}",
    // test ecx, ecx; je 3f; mov rdx, rax; and edx, 1; jmp 4f; 3: mov rdx, rax; and edx, 1; 4: cmp edx, 0; je trap; ret
    proven: "85c974084889c283e201eb064889c283e20183fa007401c3e8{trap}",
    reason: REASON.REFERENCE,
  },
  {
    name: "a count of bytes that is a pointer",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64))",
    // mov rax, rbx; mov rdx, r15; call memory_set; ret
    refused: "4889d84c89fae8{memory_set}c3",
    // mov rax, rbx; mov edx, 100; call memory_set; ret
    proven: "4889d8ba64000000e8{memory_set}c3",
    reason: REASON.BULK,
  },
  {
    name: "a sum that is less than the one of which the bound is needed",
    arch: "x64",
    module: "(memory 1) (func (param i32 i32 i32))",
    // cmp edx, 8; jb trap; lea rsi, [rax + rdx]; sub rsi, 8; cmp rsi, r14; ja trap; add rax, rbx; call memory_set; ret
    refused: "83fa087216488d34104883ee084c39f677094801d8e8{memory_set}c3e8{trap}",
    // cmp edx, 8; jb trap; lea rsi, [rax + rdx]; add rsi, 8; cmp rsi, r14; ja trap; add rax, rbx; call memory_set; ret
    proven: "83fa087216488d34104883c6084c39f677094801d8e8{memory_set}c3e8{trap}",
    reason: REASON.BULK,
  },
  {
    name: "a sum of 64 bits that may wrap",
    arch: "x64",
    module: "(memory 1) (func (param i64 i32 i64))",
    // lea rsi, [rax + rdx]; cmp rsi, r14; ja trap; add rax, rbx; call memory_set; ret
    refused: "488d34104c39f677094801d8e8{memory_set}c3e8{trap}",
    // mov eax, eax; mov edx, edx; lea rsi, [rax + rdx]; cmp rsi, r14; ja trap; add rax, rbx; call memory_set; ret
    proven: "89c089d2488d34104c39f677094801d8e8{memory_set}c3e8{trap}",
    reason: REASON.BULK,
  },
  {
    name: "a sum whose carry is set",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64 i64))",
    // mov rsi, rax; add rsi, rdx; jae trap; cmp rsi, r14; ja trap; add rax, rbx; call memory_set; ret
    refused: "4889c64801d6730e4c39f677094801d8e8{memory_set}c3e8{trap}",
    // mov rsi, rax; add rsi, rdx; jb trap; cmp rsi, r14; ja trap; add rax, rbx; call memory_set; ret
    proven: "4889c64801d6720e4c39f677094801d8e8{memory_set}c3e8{trap}",
    reason: REASON.BULK,
  },
  {
    name: "the carry of another sum",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64 i64))",
    // mov rsi, rcx; add rsi, rdx; lea rsi, [rax + rdx]; jb trap; cmp rsi, r14; ja trap; add rax, rbx; call memory_set;
    // ret
    refused: "4889ce4801d6488d3410720e4c39f677094801d8e8{memory_set}c3e8{trap}",
    // mov rsi, rax; add rsi, rdx; jb trap; cmp rsi, r14; ja trap; add rax, rbx; call memory_set; ret
    proven: "4889c64801d6720e4c39f677094801d8e8{memory_set}c3e8{trap}",
    reason: REASON.BULK,
  },
  {
    name: "a sum that is compared with another number than its own",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64 i64))",
    // lea rsi, [rax + rdx]; cmp rcx, rsi; ja trap; cmp rsi, r14; ja trap; add rax, rbx; call memory_set; ret
    refused: "488d34104839f1770e4c39f677094801d8e8{memory_set}c3e8{trap}",
    // lea rsi, [rax + rdx]; cmp rax, rsi; ja trap; cmp rsi, r14; ja trap; add rax, rbx; call memory_set; ret
    proven: "488d34104839f0770e4c39f677094801d8e8{memory_set}c3e8{trap}",
    reason: REASON.BULK,
  },
  {
    name: "a sum that is below its number",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64 i64))",
    // lea rsi, [rax + rdx]; cmp rsi, rax; ja trap; cmp rsi, r14; ja trap; add rax, rbx; call memory_set; ret
    refused: "488d34104839c6770e4c39f677094801d8e8{memory_set}c3e8{trap}",
    // lea rsi, [rax + rdx]; cmp rdx, rsi; ja trap; cmp rsi, r14; ja trap; add rax, rbx; call memory_set; ret
    proven: "488d34104839f2770e4c39f677094801d8e8{memory_set}c3e8{trap}",
    reason: REASON.BULK,
  },
  {
    name: "a sum of which 32 bits are compared with its number",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64 i64))",
    // lea rsi, [rax + rdx]; cmp eax, esi; ja trap; cmp rsi, r14; ja trap; add rax, rbx; call memory_set; ret
    refused: "488d341039f0770e4c39f677094801d8e8{memory_set}c3e8{trap}",
    // lea rsi, [rax + rdx]; cmp rax, rsi; ja trap; cmp rsi, r14; ja trap; add rax, rbx; call memory_set; ret
    proven: "488d34104839f0770e4c39f677094801d8e8{memory_set}c3e8{trap}",
    reason: REASON.BULK,
  },
  {
    name: "a sum whose carry is set",
    arch: "arm64",
    module: "(memory 1) (func (param i64 i64 i64))",
    frame: 8,
    // stp xzr, x30, [sp, #-16]; adds x3, x0, x2; b.lo trap; cmp x3, x27; b.hi trap; add x0, x0, x26; bl memory_set;
    // ldp xzr, x30, [sp], #16; ret
    refused: "ff7bbfa9030002abe30000547f001beba800005400001a8b{memory_set}ff7bc1a8c0035fd6{trap}",
    // stp xzr, x30, [sp, #-16]; adds x3, x0, x2; b.hs trap; cmp x3, x27; b.hi trap; add x0, x0, x26; bl memory_set;
    // ldp xzr, x30, [sp], #16; ret
    proven: "ff7bbfa9030002abe20000547f001beba800005400001a8b{memory_set}ff7bc1a8c0035fd6{trap}",
    reason: REASON.BULK,
  },
  {
    name: "the carry of a compare in front of a sum",
    arch: "arm64",
    module: "(memory 1) (func (param i64 i64 i64))",
    frame: 8,
    // stp xzr, x30, [sp, #-16]; cmp x0, x1; add x3, x0, x2; b.hs trap; cmp x3, x27; b.hi trap; add x0, x0, x26; bl
    // memory_set; ldp xzr, x30, [sp], #16; ret
    refused: "ff7bbfa91f0001eb0300028be20000547f001beba800005400001a8b{memory_set}ff7bc1a8c0035fd6{trap}",
    // stp xzr, x30, [sp, #-16]; adds x3, x0, x2; b.hs trap; cmp x3, x27; b.hi trap; add x0, x0, x26; bl memory_set;
    // ldp xzr, x30, [sp], #16; ret
    proven: "ff7bbfa9030002abe20000547f001beba800005400001a8b{memory_set}ff7bc1a8c0035fd6{trap}",
    reason: REASON.BULK,
  },
  {
    name: "a sum that was compared in front of a loop, which replaces one of its numbers",
    arch: "x64",
    module: "(memory 1) (func (param i32 i32 i32))",
    // lea rsi, [rax + rdx]; cmp rsi, r14; ja trap; 2: test ecx, ecx; je 1f; mov eax, ecx; xor ecx, ecx; jmp 2b; 1: add
    // rax, rbx; call memory_set; ret
    refused: "488d34104c39f6771385c9740689c831c9ebf64801d8e8{memory_set}c3e8{trap}",
    // 2: test ecx, ecx; je 1f; mov eax, ecx; xor ecx, ecx; jmp 2b; 1: lea rsi, [rax + rdx]; cmp rsi, r14; ja trap; add
    // rax, rbx; call memory_set; ret
    proven: "85c9740689c831c9ebf6488d34104c39f677094801d8e8{memory_set}c3e8{trap}",
    reason: REASON.BULK,
  },
  {
    name: "a range of elements of which start and length are in bounds, but not the end",
    arch: "x64",
    module: "(type $n (array (mut i32))) (func (param (ref null $n) i32 i32))",
    // mov r8d, [rax + 4]; cmp ecx, r8d; ja trap; cmp edx, r8d; ja trap; shl rcx, 2; lea rax, [rax + rcx + 8]; shl rdx,
    // 2; xor ecx, ecx; call memory_set; ret
    refused: "448b40044439c1771a4439c2771548c1e102488d44080848c1e20231c9e8{memory_set}c3e8{trap}",
    // mov r8d, [rax + 4]; cmp ecx, r8d; ja trap; cmp edx, r8d; ja trap; shl rcx, 2; lea rax, [rax + 8]; shl rdx, 2;
    // xor ecx, ecx; call memory_set; ret
    proven: "448b40044439c177194439c2771448c1e102488d400848c1e20231c9e8{memory_set}c3e8{trap}",
    reason: REASON.BULK,
  },
  {
    name: "a stack limit of which 32 bits are compared",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64))",
    // mov r11, [r15 + 8]; lea rsi, [rsp - 4096]; cmp esi, r11d; jbe trap; sub rsp, 4096; add rsp, 4096; ret
    refused: "4d8b5f08488db42400f0ffff4439de760f4881ec001000004881c400100000c3e8{trap}",
    // mov r11, [r15 + 8]; lea rsi, [rsp - 4096]; cmp rsi, r11; jbe trap; sub rsp, 4096; add rsp, 4096; ret
    proven: "4d8b5f08488db42400f0ffff4c39de760f4881ec001000004881c400100000c3e8{trap}",
    reason: REASON.STACK_DEPTH,
  },
  {
    name: "a tag of which 32 bits are compared with a larger number",
    arch: "x64",
    module: "(func (param anyref) (result i31ref))",
    // mov rdx, rax; and edx, 1; movabs rsi, 0x100000000; cmp edx, esi; jne trap; ret
    refused: "4889c283e20148be000000000100000039f27501c3e8{trap}",
    // mov rdx, rax; and edx, 1; mov esi, 1; cmp edx, esi; jne trap; ret
    proven: "4889c283e201be0100000039f27501c3e8{trap}",
    reason: REASON.REFERENCE,
  },
  {
    name: "an exchange that is no NOP",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64))",
    // xchg r8, rax; ret
    refused: "4990c3",
    // nop; ret
    proven: "90c3",
    reason: REASON.DECODE,
  },
  {
    name: "an access of null without the context",
    arch: "x64",
    module: "(type $s (struct (field (mut i32)))) (func (param (ref null $s)) (result i32))",
    // mov rcx, r15; xor r15d, r15d; mov eax, [rax + 8]; mov r15, rcx; ret
    refused: "4c89f94531ff8b40084989cfc3",
    // mov rcx, r15; xor r15d, r15d; mov r15, rcx; mov eax, [rax + 8]; ret
    proven: "4c89f94531ff4989cf8b4008c3",
    reason: REASON.CONTEXT_LOST,
  },
  {
    name: "a division without the context",
    arch: "x64",
    module: "(func (param i32 i32) (result i32))",
    // mov rsi, r15; xor r15d, r15d; xor edx, edx; div ecx; mov r15, rsi; ret
    refused: "4c89fe4531ff31d2f7f14989f7c3",
    // xor edx, edx; div ecx; ret
    proven: "31d2f7f1c3",
    reason: REASON.CONTEXT_LOST,
  },
  {
    name: "a poll without the context",
    arch: "x64",
    module: "(func)",
    // mov rsi, r15; xor r15d, r15d; mov ecx, [rip + POLL]; mov r15, rsi; ret
    refused: "4c89fe4531ff8b0d{poll}4989f7c3",
    // mov ecx, [rip + POLL]; mov r15, r15; ret
    proven: "8b0d{poll}4d89ffc3",
    reason: REASON.CONTEXT_LOST,
  },
  {
    name: "an operand that placing the image changes",
    arch: "x64",
    module: "(func)",
    // mov ecx, POLL; ret
    refused: "b9{poll}c3",
    // mov ecx, [rip + POLL]; ret
    proven: "8b0d{poll}c3",
    reason: REASON.POLL,
  },
  {
    name: "the base of a memory that may have moved",
    arch: "x64",
    module: "(memory i64 1) (func)",
    isGuarded: true,
    frame: 8,
    // sub rsp, 8; cmp rsp, [r15 + 8]; jbe trap; mov [rsp], rbx; call self; mov rcx, [rsp]; mov ecx, [rcx]; add rsp, 8;
    // ret
    refused: "4883ec08493b6708761448891c24e8{self}488b0c248b094883c408c3e8{trap}",
    // sub rsp, 8; cmp rsp, [r15 + 8]; jbe trap; mov [rsp], rbx; call self; mov rcx, rbx; mov ecx, [rcx]; add rsp, 8;
    // ret
    proven: "4883ec08493b6708761348891c24e8{self}4889d98b094883c408c3e8{trap}",
    reason: REASON.ADDRESS,
  },
  {
    name: "a reference of which a store of 16 bytes changes half",
    arch: "x64",
    module: "(type $s (struct (field (mut i32)))) (func (param (ref $s)) (result (ref $s)))",
    // mov rcx, [r15 + 24]; mov [rcx + 16], rax; movups [rcx + 8], xmm0; mov rax, [rcx + 16]; ret
    refused: "498b4f18488941100f114108488b4110c3",
    // mov rcx, [r15 + 24]; mov [rcx + 16], rax; movups [rcx + 32], xmm0; mov rax, [rcx + 16]; ret
    proven: "498b4f18488941100f114120488b4110c3",
    reason: REASON.REFERENCE,
  },
  {
    name: "a payload that was overwritten before the tag was compared",
    arch: "x64",
    module: "(type $s (struct (field (mut i32)))) (tag (param (ref null $s))) (func (result (ref null $s)))",
    frame: 8,
    // sub rsp, 8; cmp rsp, [r15 + 8]; jbe trap; call self; add rsp, 8; ret; nop dword ptr [rax]; mov rcx, [r15]; mov
    // rdx, [rcx + CAUGHT_TAG]; mov rsi, [r15 + 24]; mov qword ptr [rsi], 5; cmp rdx, [r15 + TAGS]; jne trap; mov rax,
    // [rsi]; add rsp, 8; ret
    refused:
      "4883ec08493b67087633e8{self}4883c408c30f1f00498b0f488b91{caughtTag}498b771848c70605000000493b97{tags}7508488b064883c408c3e8{trap}",
    // sub rsp, 8; cmp rsp, [r15 + 8]; jbe trap; call self; add rsp, 8; ret; nop dword ptr [rax]; mov rcx, [r15]; mov
    // rdx, [rcx + CAUGHT_TAG]; mov rsi, [r15 + 24]; nop; cmp rdx, [r15 + TAGS]; jne trap; mov rax, [rsi]; add rsp, 8;
    // ret
    proven:
      "4883ec08493b6708762de8{self}4883c408c30f1f00498b0f488b91{caughtTag}498b771890493b97{tags}7508488b064883c408c3e8{trap}",
    reason: REASON.REFERENCE,
  },
  {
    name: "an odd number to which a displacement was added",
    arch: "x64",
    module: "(func (param i32 i32) (result i31ref))",
    // movzx ecx, cl; or ecx, 1; lea rax, [rcx + 7]; ret
    refused: "0fb6c983c901488d4107c3",
    // movzx ecx, cl; or ecx, 1; lea rax, [rcx]; ret
    proven: "0fb6c983c901488d01c3",
    reason: REASON.REFERENCE,
  },
  {
    name: "an odd number plus another",
    arch: "x64",
    module: "(func (param i32 i32) (result i31ref))",
    // movzx eax, al; movzx ecx, cl; or ecx, 1; add rax, rcx; ret
    refused: "0fb6c00fb6c983c9014801c8c3",
    // movzx eax, al; movzx ecx, cl; or ecx, 1; mov rax, rcx; ret
    proven: "0fb6c00fb6c983c9014889c8c3",
    reason: REASON.REFERENCE,
  },
  {
    name: "zero or an odd number as a reference that is not null",
    arch: "x64",
    module: "(func (param i32 i32) (result (ref i31)))",
    // or ecx, 1; xor edx, edx; test eax, eax; cmove rcx, rdx; mov rax, rcx; ret
    refused: "83c90131d285c0480f44ca4889c8c3",
    // or ecx, 1; mov rax, rcx; ret
    proven: "83c9014889c8c3",
    reason: REASON.REFERENCE,
  },
  {
    name: "a reference in a vector register that was changed",
    arch: "x64",
    module: "(func (param anyref) (result anyref))",
    // movq xmm15, rax; pxor xmm15, xmm0; mov rax, 0; movq rax, xmm15; ret
    refused: "664c0f6ef866440feff848c7c000000000664c0f7ef8c3",
    // movq xmm15, rax; pxor xmm14, xmm0; mov rax, 0; movq rax, xmm15; ret
    proven: "664c0f6ef866440feff048c7c000000000664c0f7ef8c3",
    reason: REASON.REFERENCE,
  },
  {
    name: "a reference in a vector register that was shifted",
    arch: "x64",
    module: "(func (param anyref) (result anyref))",
    // movq xmm15, rax; psllq xmm15, 1; mov rax, 0; movq rax, xmm15; ret
    refused: "664c0f6ef866410f73f70148c7c000000000664c0f7ef8c3",
    // movq xmm15, rax; mov rax, 0; movq rax, xmm15; ret
    proven: "664c0f6ef848c7c000000000664c0f7ef8c3",
    reason: REASON.REFERENCE,
  },
  {
    name: "a sum of constants that does not set the carry",
    arch: "x64",
    module: "(func (param i64 i64))",
    // mov r11, -9; add r11, 8; jb 1f; mov eax, [rcx]; 1: ret
    refused: "49c7c3f7ffffff4983c30872028b01c3",
    // mov r11, -8; add r11, 8; jb 1f; mov eax, [rcx]; 1: ret
    proven: "49c7c3f8ffffff4983c30872028b01c3",
    reason: REASON.ADDRESS,
  },
  {
    name: "a number that is 1 where a reference is not null, as a test for null",
    arch: "x64",
    module: "(func (param anyref) (result nullref))",
    // test rax, rax; mov ecx, 1; jne 1f; mov ecx, 0; 1: test ecx, ecx; je trap; ret
    refused: "4885c0b9010000007505b90000000085c97401c3e8{trap}",
    // test rax, rax; mov ecx, 1; je 1f; mov ecx, 0; 1: test ecx, ecx; je trap; ret
    proven: "4885c0b9010000007405b90000000085c97401c3e8{trap}",
    reason: REASON.REFERENCE,
  },
  {
    name: "a number that may be even, chosen with zero, as a reference to an integer",
    arch: "x64",
    module: "(memory 1) (func (param i32 i32 i32) (result (ref null i31)))",
    // cmp edx, 5; sbb r8d, r8d; and eax, r8d; ret
    refused: "83fa05451bc04421c0c3",
    // or eax, 1; cmp edx, 5; sbb r8d, r8d; and eax, r8d; ret
    proven: "83c80183fa05451bc04421c0c3",
    reason: REASON.REFERENCE,
  },
  {
    name: "the lowest bits of two numbers, of which one may be even",
    arch: "x64",
    module: "(memory 1) (func (param i32 i32 i32) (result (ref i31)))",
    // or eax, 1; and eax, ecx; ret
    refused: "83c80121c8c3",
    // or eax, 1; or ecx, 1; and eax, ecx; ret
    proven: "83c80183c90121c8c3",
    reason: REASON.REFERENCE,
  },
  {
    name: "a test for null of another reference",
    arch: "x64",
    module: "(memory 1) (func (param anyref anyref) (result (ref null i31)))",
    // test rcx, rcx; sete r8b; movzx r8d, r8b; mov r9, rax; and r9d, 1; or r8d, r9d; je trap; ret
    refused: "4885c9410f94c0450fb6c04989c14183e1014509c87401c3e8{trap}",
    // test rax, rax; sete r8b; movzx r8d, r8b; mov r9, rax; and r9d, 1; or r8d, r9d; je trap; ret
    proven: "4885c0410f94c0450fb6c04989c14183e1014509c87401c3e8{trap}",
    reason: REASON.REFERENCE,
  },
  {
    name: "a test for null or an integer as one for an integer that is not null",
    arch: "x64",
    module: "(memory 1) (func (param anyref anyref) (result (ref i31)))",
    // test rax, rax; sete r8b; movzx r8d, r8b; mov r9, rax; and r9d, 1; or r8d, r9d; je trap; ret
    refused: "4885c0410f94c0450fb6c04989c14183e1014509c87401c3e8{trap}",
    // mov r9, rax; and r9d, 1; je trap; ret
    proven: "4989c14183e1017401c3e8{trap}",
    reason: REASON.REFERENCE,
  },
  {
    name: "the length of another array",
    arch: "x64",
    module: "(type $n (array (mut i32))) (func (param (ref $n) (ref $n)) (result i32))",
    // mov r8d, [rax + 4]; mov r9d, [rcx + 4]; cmp r9d, r8d; jae trap; mov eax, [rcx + r9*4 + 8]; ret
    refused: "448b4004448b49044539c17306428b448908c3e8{trap}",
    // mov r8d, [rax + 4]; mov r9d, [rcx + 4]; cmp r9d, r8d; jae trap; mov eax, [rax + r9*4 + 8]; ret
    proven: "448b4004448b49044539c17306428b448808c3e8{trap}",
    reason: REASON.OBJECT,
  },
  {
    name: "a length without bound, shifted, as an address",
    arch: "x64",
    module: "(type $n (array (mut i32))) (memory 1) (func (param (ref $n) i32) (result i32))",
    isGuarded: true,
    // mov r8d, [rax + 4]; shl r8, 4; mov eax, [rbx + r8]; ret
    refused: "448b400449c1e004428b0403c3",
    // mov r8d, [rax + 4]; cmp r8d, 100; ja trap; shl r8, 4; mov eax, [rbx + r8]; ret
    proven: "448b40044183f864770949c1e004428b0403c3e8{trap}",
    reason: REASON.MEMORY,
  },
  {
    name: "a sum with a large number, whose carry is not tested",
    arch: "x64",
    module: "(memory i64 1) (func (param i64 i64) (result i32))",
    // mov rcx, -16; add rax, rcx; cmp rax, r14; jae trap; mov eax, [rbx + rax + 64]; ret
    refused: "48c7c1f0ffffff4801c84c39f073058b440340c3e8{trap}",
    // mov rcx, -16; add rax, rcx; jb trap; cmp rax, r14; jae trap; mov eax, [rbx + rax + 64]; ret
    proven: "48c7c1f0ffffff4801c8720a4c39f073058b440340c3e8{trap}",
    reason: REASON.MEMORY,
  },
  {
    name: "a sum with a large number that sets the carry",
    arch: "arm64",
    module: "(memory i64 1) (func (param i64 i64) (result i32))",
    // stp x9, x30, [sp, #-16]; mov x9, #-16; adds x0, x0, x9; b.lo trap; cmp x0, x27; b.hs trap; add x0, x0, #64; ldr
    // w0, [x26, x0]; ldp x9, x30, [sp], #16; ret
    refused: "e97bbfa9e9018092000009abe30000541f001beba200005400000191406b60b8e97bc1a8c0035fd6{trap}",
    // stp x9, x30, [sp, #-16]; mov x9, #-16; adds x0, x0, x9; b.hs trap; cmp x0, x27; b.hs trap; add x0, x0, #64; ldr
    // w0, [x26, x0]; ldp x9, x30, [sp], #16; ret
    proven: "e97bbfa9e9018092000009abe20000541f001beba200005400000191406b60b8e97bc1a8c0035fd6{trap}",
    reason: REASON.MEMORY,
  },
  {
    name: "a sum of constants that is not negative",
    arch: "x64",
    module: "(memory i64 1) (func (param i64 i64) (result i32))",
    // mov rcx, -16; add rcx, 16; cmp rcx, r14; jae trap; mov eax, [rbx + rcx + 64]; ret
    refused: "48c7c1f0ffffff4883c1104c39f173058b440b40c3e8{trap}",
    // mov rcx, -16; add rcx, 8; cmp rcx, r14; jae trap; mov eax, [rbx + rcx + 64]; ret
    proven: "48c7c1f0ffffff4883c1084c39f173058b440b40c3e8{trap}",
    reason: REASON.MEMORY,
  },
  {
    name: "a compare of a number with itself, of which the other condition is taken for certain",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64) (result i32))",
    // mov eax, eax; cmp rax, rax; ja next; mov eax, [rcx]; next: ret
    refused: "89c04839c077028b01c3",
    // mov eax, eax; cmp rax, rax; jae next; mov eax, [rcx]; next: ret
    proven: "89c04839c073028b01c3",
    reason: REASON.ADDRESS,
  },
  {
    name: "a compare of a number with itself and one, taken for one with itself",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64) (result i32))",
    // mov eax, eax; lea rdx, [rax + 1]; cmp rdx, rax; jbe next; mov eax, [rcx]; next: ret
    refused: "89c0488d50014839c276028b01c3",
    // mov eax, eax; mov rdx, rax; cmp rdx, rax; jbe next; mov eax, [rcx]; next: ret
    proven: "89c04889c24839c276028b01c3",
    reason: REASON.ADDRESS,
  },
  {
    name: "the flags of an XOR as those of a compare with one",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64) (result i32))",
    // xor eax, eax; jne next; mov eax, [rcx]; next: ret
    refused: "31c075028b01c3",
    // xor eax, eax; je next; mov eax, [rcx]; next: ret
    proven: "31c074028b01c3",
    reason: REASON.ADDRESS,
  },
  {
    name: "a constant of which MOVK leaves the highest bits small",
    arch: "arm64",
    module: "(memory i64 1) (func (param i64 i64) (result i32))",
    // stp x9, x30, [sp, #-16]; movn x9, #15; movk x9, #8, lsl #48; cmp x9, x27; b.hs trap; ldr w0, [x1]; ldp x9, x30,
    // [sp], #16; ret
    refused: "e97bbfa9e90180920901e0f23f011beb82000054200040b9e97bc1a8c0035fd6{trap}",
    // stp x9, x30, [sp, #-16]; movn x9, #15; movk x9, #16, lsl #48; cmp x9, x27; b.hs trap; ldr w0, [x1]; ldp x9,
    // x30, [sp], #16; ret
    proven: "e97bbfa9e90180920902e0f23f011beb82000054200040b9e97bc1a8c0035fd6{trap}",
    reason: REASON.ADDRESS,
  },
  {
    name: "a fill of elements up to the end of another array",
    arch: "x64",
    module: "(type $n (array (mut i32))) (func (param (ref $n) i32 (ref $n)))",
    // mov r8d, [rax + 4]; cmp ecx, r8d; ja trap; lea r9, [rax + 8]; mov r8d, [rdx + 4]; cmp ecx, r8d; ja trap; lea
    // rsi, [rdx + 8]; lea r10, [rdx + rcx*4 + 8]; xor eax, eax; xor edx, edx; next: cmp r9, r10; jae end; mov dword
    // ptr [r9], 7; add r9, 4; jmp next; end: ret
    refused:
      "448b40044439c1772d4c8d4808448b42044439c17720488d72084c8d548a0831c031d24d39d1730d41c701070000004983c104ebeec3e8{trap}",
    // mov r8d, [rax + 4]; cmp ecx, r8d; ja trap; lea r9, [rax + 8]; lea r10, [rax + rcx*4 + 8]; xor eax, eax; xor edx,
    // edx; next: cmp r9, r10; jae end; mov dword ptr [r9], 7; add r9, 4; jmp next; end: ret
    proven: "448b40044439c177204c8d48084c8d54880831c031d24d39d1730d41c701070000004983c104ebeec3e8{trap}",
    reason: REASON.OBJECT,
  },
  {
    name: "a fill whose first element a loop replaces by one of another array",
    arch: "x64",
    module: "(type $n (array (mut i32))) (func (param (ref $n) i32 (ref $n)))",
    // mov r8d, [rax + 4]; cmp ecx, r8d; ja trap; lea r9, [rax + 8]; lea r10, [rax + rcx*4 + 8]; mov r8d, [rdx + 4];
    // cmp ecx, r8d; ja trap; lea rsi, [rdx + 8]; lea rdi, [rdx + rcx*4 + 8]; xor eax, eax; xor edx, edx; next: cmp r9,
    // r10; jae end; mov dword ptr [r9], 7; mov r9, rsi; jmp next; end: ret
    refused:
      "448b40044439c177314c8d48084c8d548808448b42044439c1771f488d7208488d7c8a0831c031d24d39d1730c41c701070000004989f1ebefc3e8{trap}",
    // mov r8d, [rax + 4]; cmp ecx, r8d; ja trap; lea r9, [rax + 8]; lea r10, [rax + rcx*4 + 8]; lea rsi, [rax + 8];
    // xor eax, eax; xor edx, edx; next: cmp r9, r10; jae end; mov dword ptr [r9], 7; mov r9, rsi; jmp next; end: ret
    proven: "448b40044439c177234c8d48084c8d548808488d700831c031d24d39d1730c41c701070000004989f1ebefc3e8{trap}",
    reason: REASON.OBJECT,
  },
  {
    name: "a fill whose end a loop replaces by that of another array",
    arch: "x64",
    module: "(type $n (array (mut i32))) (func (param (ref $n) i32 (ref $n)))",
    // mov r8d, [rax + 4]; cmp ecx, r8d; ja trap; lea r9, [rax + 8]; lea r10, [rax + rcx*4 + 8]; mov r8d, [rdx + 4];
    // cmp ecx, r8d; ja trap; lea rsi, [rdx + 8]; lea rdi, [rdx + rcx*4 + 8]; xor eax, eax; xor edx, edx; next: cmp r9,
    // r10; jae end; mov dword ptr [r9], 7; add r9, 4; mov r10, rdi; jmp next; end: ret
    refused:
      "448b40044439c177354c8d48084c8d548808448b42044439c17723488d7208488d7c8a0831c031d24d39d1731041c701070000004983c1044989faebebc3e8{trap}",
    // mov r8d, [rax + 4]; cmp ecx, r8d; ja trap; lea r9, [rax + 8]; lea r10, [rax + rcx*4 + 8]; mov r8d, [rdx + 4];
    // cmp ecx, r8d; ja trap; lea rsi, [rdx + 8]; lea rdi, [rdx + rcx*4 + 8]; xor eax, eax; xor edx, edx; next: cmp r9,
    // r10; jae end; mov dword ptr [r9], 7; add r9, 4; jmp next; end: ret
    proven:
      "448b40044439c177324c8d48084c8d548808448b42044439c17720488d7208488d7c8a0831c031d24d39d1730d41c701070000004983c104ebeec3e8{trap}",
    reason: REASON.OBJECT,
  },
  {
    name: "a fill whose first element and end a loop replaces, one of them by that of a third array",
    arch: "x64",
    module: "(type $n (array (mut i32))) (func (param (ref $n) i32 (ref $n)))",
    // mov r8d, [rax + 4]; cmp ecx, r8d; ja trap; lea r9, [rax + 8]; lea r10, [rax + rcx*4 + 8]; mov r8d, [rdx + 4];
    // cmp ecx, r8d; ja trap; lea rsi, [rdx + 8]; lea rdi, [rdx + rcx*4 + 8]; mov r11, rdi; xor eax, eax; xor edx, edx;
    // next: cmp r9, r10; jae end; mov dword ptr [r9], 7; mov r9, rsi; jmp next; end: ret
    refused:
      "448b40044439c177344c8d48084c8d548808448b42044439c17722488d7208488d7c8a084989fb31c031d24d39d1730c41c701070000004989f1ebefc3e8{trap}",
    // mov r8d, [rax + 4]; cmp ecx, r8d; ja trap; lea r9, [rax + 8]; lea r10, [rax + rcx*4 + 8]; mov r8d, [rdx + 4];
    // cmp ecx, r8d; ja trap; lea rsi, [rdx + 8]; lea rdi, [rdx + rcx*4 + 8]; xor eax, eax; xor edx, edx; next: cmp r9,
    // r10; jae end; mov dword ptr [r9], 7; mov r9, rsi; mov r10, rdi; jmp next; end: ret
    proven:
      "448b40044439c177344c8d48084c8d548808448b42044439c17722488d7208488d7c8a0831c031d24d39d1730f41c701070000004989f14989faebecc3e8{trap}",
    reason: REASON.OBJECT,
  },
  {
    name: "a null test of another reference in front of the test for an integer",
    arch: "arm64",
    module: "(memory 1) (func (param anyref anyref) (result (ref null i31)))",
    // stp x9, x30, [sp, #-16]; and w3, w0, #1; cmp x1, #0; ccmp w3, #0, #0, ne; b.eq trap; ldp x9, x30, [sp], #16;
    // ret
    refused: "e97bbfa9030000123f0000f16018407a60000054e97bc1a8c0035fd6{trap}",
    // stp x9, x30, [sp, #-16]; and w3, w0, #1; cmp x0, #0; ccmp w3, #0, #0, ne; b.eq trap; ldp x9, x30, [sp], #16;
    // ret
    proven: "e97bbfa9030000121f0000f16018407a60000054e97bc1a8c0035fd6{trap}",
    reason: REASON.REFERENCE,
  },
  {
    name: "flags of a conditional compare that are those of a null reference",
    arch: "arm64",
    module: "(memory 1) (func (param anyref anyref) (result (ref null i31)))",
    // stp x9, x30, [sp, #-16]; and w3, w0, #1; cmp x0, #0; ccmp w3, #0, #0, eq; b.eq trap; ldp x9, x30, [sp], #16;
    // ret
    refused: "e97bbfa9030000121f0000f16008407a60000054e97bc1a8c0035fd6{trap}",
    // stp x9, x30, [sp, #-16]; and w3, w0, #1; cmp x0, #0; ccmp w3, #0, #0, ne; b.eq trap; ldp x9, x30, [sp], #16;
    // ret
    proven: "e97bbfa9030000121f0000f16018407a60000054e97bc1a8c0035fd6{trap}",
    reason: REASON.REFERENCE,
  },
  {
    name: "the outcome of a test, shifted beyond the guard pages, as an address",
    arch: "x64",
    module: "(memory 1) (func (param anyref i32) (result i32))",
    isGuarded: true,
    // test rax, rax; sete cl; movzx ecx, cl; shl rcx, 40; mov eax, [rbx + rcx]; ret
    refused: "4885c00f94c10fb6c948c1e1288b040bc3",
    // test rax, rax; sete cl; movzx ecx, cl; shl rcx, 3; mov eax, [rbx + rcx]; ret
    proven: "4885c00f94c10fb6c948c1e1038b040bc3",
    reason: REASON.MEMORY,
  },
  {
    name: "a register whose low byte is the outcome of a test, as an address",
    arch: "x64",
    module: "(memory 1) (func (param anyref i32) (result i32))",
    isGuarded: true,
    // test rax, rax; sete cl; mov eax, [rbx + rcx]; ret
    refused: "4885c00f94c18b040bc3",
    // test rax, rax; sete cl; movzx ecx, cl; mov eax, [rbx + rcx]; ret
    proven: "4885c00f94c10fb6c98b040bc3",
    reason: REASON.ADDRESS,
  },
  {
    name: "a test for the type that the function has, as one for another type",
    arch: "x64",
    module:
      "(type $a (sub (func (param i64 i64)))) (type $b (sub $a (func (param i64 i64)))) (func (type $a) (param i64 i64))",
    // lea rax, [r15 + record]; mov ecx, [rax + 16]; cmp ecx, [r15 + type 0]; jne end; mov eax, [rdx]; end: ret
    refused: "498d87{record}8b4810413b8f{type0}75028b02c3",
    // lea rax, [r15 + record]; mov ecx, [rax + 16]; cmp ecx, [r15 + type 1]; jne end; mov eax, [rdx]; end: ret
    proven: "498d87{record}8b4810413b8f{type1}75028b02c3",
    reason: REASON.ADDRESS,
  },
  {
    name: "a masked length that is larger than the table of jumps",
    arch: "arm64",
    module: "(type $n (array (mut i32))) (func (param (ref $n)))",
    // stp x9, x30, [sp, #-16]; ldr w3, [x0, #4]; cmp w3, #100; b.hs trap; csel x3, x3, xzr, lo; csdb; adr x17, table;
    // add x17, x17, x3, lsl #2; br x17; table: b end; b end; end: ldp x9, x30, [sp], #16; ret
    refused:
      "e97bbfa9030440b97f9001714201005463309f9a9f2203d571000010310a038b20021fd60200001401000014e97bc1a8c0035fd6{trap}",
    // stp x9, x30, [sp, #-16]; ldr w3, [x0, #4]; cmp w3, #2; b.hs trap; csel x3, x3, xzr, lo; csdb; adr x17, table;
    // add x17, x17, x3, lsl #2; br x17; table: b end; b end; end: ldp x9, x30, [sp], #16; ret
    proven:
      "e97bbfa9030440b97f0800714201005463309f9a9f2203d571000010310a038b20021fd60200001401000014e97bc1a8c0035fd6{trap}",
    reason: REASON.TARGET,
  },
  {
    name: "the length of an array or a number of 64 bits as an i32",
    arch: "x64",
    module: "(type $n (array (mut i32))) (func (param (ref $n) (ref $n) i64) (result i32))",
    // test rdx, rdx; mov eax, [rax + 4]; je end; mov rax, rdx; end: ret
    refused: "4885d28b400474034889d0c3",
    // test rdx, rdx; mov eax, [rax + 4]; je end; mov eax, [rcx + 4]; end: ret
    proven: "4885d28b400474038b4104c3",
    reason: REASON.ARGUMENT,
  },
  {
    name: "a reference that may be null, as one that is not",
    arch: "x64",
    module: "(type $n (array (mut i32))) (func (param (ref null $n) (ref $n) i64))",
    // test rax, rax; jne end; mov eax, [rdx]; end: ret
    refused: "4885c075028b02c3",
    // test rcx, rcx; jne end; mov eax, [rdx]; end: ret
    proven: "4885c975028b02c3",
    reason: REASON.ADDRESS,
  },
  {
    name: "a test for a structure of the type of a structure",
    arch: "x64",
    module: "(type $n (array (mut i32))) (type $s (struct)) (func (param i64 i64 i64))",
    // mov ecx, [r15 + type 1]; shl rcx, 6; mov r8, [r15 + 32]; mov r8, [r8 + 512]; cmp dword ptr [r8 + rcx], 1; jne
    // end; mov eax, [rdx]; end: ret
    refused: "418b8f{type1}48c1e1064d8b47204d8b800002000041833c080175028b02c3",
    // mov ecx, [r15 + type 0]; shl rcx, 6; mov r8, [r15 + 32]; mov r8, [r8 + 512]; cmp dword ptr [r8 + rcx], 1; jne
    // end; mov eax, [rdx]; end: ret
    proven: "418b8f{type0}48c1e1064d8b47204d8b800002000041833c080175028b02c3",
    reason: REASON.ADDRESS,
  },
  {
    name: "an import whose type may have subtypes, as one of its type exactly",
    arch: "x64",
    module: "(type $a (sub (func (param i64 i64)))) (type $b (sub $a (func (param i64 i64)))) (type $c (func)) " +
      '(import "m" "f" (func (type $a))) (import "m" "g" (func (type $c))) (func (param i64 i64))',
    // mov ecx, [r15 + type of import 0]; cmp ecx, [r15 + type 1]; jne end; mov eax, [rdx]; end: ret
    refused: "418b8f{import0}413b8f{type1}75028b02c3",
    // mov ecx, [r15 + type of import 1]; cmp ecx, [r15 + type 1]; jne end; mov eax, [rdx]; end: ret
    proven: "418b8f{import1}413b8f{type1}75028b02c3",
    reason: REASON.ADDRESS,
  },
  {
    name: "a branch over a jump to a trap, on the wrong condition",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64 i64))",
    // mov eax, eax; mov edx, edx; lea rsi, [rax + rdx]; cmp rsi, r14; jae over; jmp trap; over: add rax, rbx; call
    // memory_set; ret
    refused: "89c089d2488d34104c39f67302eb094801d8e8{memory_set}c3e8{trap}",
    // mov eax, eax; mov edx, edx; lea rsi, [rax + rdx]; cmp rsi, r14; jbe over; jmp trap; over: add rax, rbx; call
    // memory_set; ret
    proven: "89c089d2488d34104c39f67602eb094801d8e8{memory_set}c3e8{trap}",
    reason: REASON.BULK,
  },
  {
    name: "a sum that is compared with the length of another memory",
    arch: "x64",
    module: "(memory 1) (memory 1) (func (param i64 i64 i64))",
    // mov eax, eax; mov edx, edx; lea rsi, [rax + rdx]; cmp rsi, [r15 + 88]; ja trap; cmp rsi, [r15 + 88]; ja trap; add
    // rax, rbx; call memory_set; ret
    refused: "89c089d2488d3410493b7758770f493b775877094801d8e8{memory_set}c3e8{trap}",
    // mov eax, eax; mov edx, edx; lea rsi, [rax + rdx]; cmp rsi, r14; ja trap; cmp rsi, [r15 + 88]; ja trap; add rax,
    // rbx; call memory_set; ret
    proven: "89c089d2488d34104c39f6770f493b775877094801d8e8{memory_set}c3e8{trap}",
    reason: REASON.BULK,
  },
  {
    name: "the lower half of a word of 64 bits",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64))",
    // sub rsp, 8; mov [rsp], rax; mov eax, [rsp]; mov eax, [rbx + rax]; add rsp, 8; ret
    refused: "4883ec08488904248b04248b04034883c408c3",
    // sub rsp, 8; mov qword ptr [rsp], 9; mov eax, [rsp]; mov eax, [rbx + rax]; add rsp, 8; ret
    proven: "4883ec0848c70424090000008b04248b04034883c408c3",
    reason: REASON.MEMORY,
  },
  {
    name: "an index that is doubled once too often",
    arch: "x64",
    module: "(type $n (array i16)) (func (param (ref $n) i32) (result i32))",
    // mov edx, [rax + 4]; cmp ecx, edx; jae trap; mov esi, ecx; add rsi, rsi; add rsi, rsi; movzx eax, word ptr [rax +
    // rsi + 8]; ret
    refused: "8b500439d1730e89ce4801f64801f60fb7443008c3e8{trap}",
    // mov edx, [rax + 4]; cmp ecx, edx; jae trap; mov esi, ecx; add rsi, rsi; movzx eax, word ptr [rax + rsi + 8]; ret
    proven: "8b500439d1730b89ce4801f60fb7443008c3e8{trap}",
    reason: REASON.ADDRESS,
  },
  {
    name: "the length of a table as an index that may be that of an array",
    arch: "x64",
    module: "(memory 1) (table 1 funcref) (type $n (array i32)) (func (param (ref $n)) (result i32))",
    // mov edx, [r15 + 88]; cmp edx, [rax + 4]; ja trap; mov eax, [rax + 4*rdx + 8]; ret
    refused: "418b57583b500477058b449008c3e8{trap}",
    // mov edx, [r15 + 88]; cmp edx, [rax + 4]; jae trap; mov eax, [rax + 4*rdx + 8]; ret
    proven: "418b57583b500473058b449008c3e8{trap}",
    reason: REASON.OBJECT,
  },
  {
    name: "the length of a table as an address, one byte too far",
    arch: "x64",
    module: "(memory 1) (table 1 funcref) (func (result i64))",
    // mov ecx, [r15 + 88]; lea r11, [rcx + 65544]; cmp r11, r14; ja trap; mov rax, [rbx + rcx + 65537]; ret
    refused: "418b4f584c8d99080001004d39f37709488b840b01000100c3e8{trap}",
    // mov ecx, [r15 + 88]; lea r11, [rcx + 65544]; cmp r11, r14; ja trap; mov rax, [rbx + rcx + 65536]; ret
    proven: "418b4f584c8d99080001004d39f37709488b840b00000100c3e8{trap}",
    reason: REASON.MEMORY,
  },
  {
    name: "a tag of a reference of unknown type",
    arch: "x64",
    module: "(type $s (struct)) (func (param (ref $s) anyref i64))",
    // test cl, 1; je end; mov eax, [rdx]; end: ret
    refused: "f6c10174028b02c3",
    // test al, 1; je end; mov eax, [rdx]; end: ret
    proven: "f6c00174028b02c3",
    reason: REASON.ADDRESS,
  },
  {
    name: "a number that may be above the smallest length of a memory",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64 i64))",
    // mov eax, eax; cmp rax, r14; jbe end; mov eax, [rdx]; end: ret
    refused: "89c04c39f076028b02c3",
    // movzx eax, ax; cmp rax, r14; jbe end; mov eax, [rdx]; end: ret
    proven: "0fb7c04c39f076028b02c3",
    reason: REASON.ADDRESS,
  },
  {
    name: "the carry of a sum with a number of 64 bits",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64 i64))",
    // mov eax, eax; add rax, rcx; jae end; mov eax, [rdx]; end: ret
    refused: "89c04801c873028b02c3",
    // mov eax, eax; mov ecx, ecx; add rax, rcx; jae end; mov eax, [rdx]; end: ret
    proven: "89c089c94801c873028b02c3",
    reason: REASON.ADDRESS,
  },
  {
    name: "a mask that leaves out a bit of a number",
    arch: "x64",
    module: "(memory 1) (func (param i64 i64 i64))",
    // and eax, 3; mov ecx, eax; and ecx, 1; test eax, eax; je end; test ecx, ecx; jne end; mov eax, [rdx]; end: ret
    refused: "83e00389c183e10185c0740685c975028b02c3",
    // and eax, 3; mov ecx, eax; and ecx, 7; test eax, eax; je end; test ecx, ecx; jne end; mov eax, [rdx]; end: ret
    proven: "83e00389c183e10785c0740685c975028b02c3",
    reason: REASON.ADDRESS,
  },
  {
    name: "the length of a table of 64 bits as an address, one byte too far",
    arch: "x64",
    module: "(memory 1) (table i64 1 funcref) (func (param i64 i64 i64))",
    // mov rax, [r15 + 88]; mov r11d, 12; add r11, rax; jb trap; cmp r11, r14; ja trap; mov word ptr [rbx + rax + 11],
    // dx; ret
    refused: "498b475841bb0c0000004901c3720b4d39f37706668954030bc3e8{trap}",
    // mov rax, [r15 + 88]; mov r11d, 12; add r11, rax; jb trap; cmp r11, r14; ja trap; mov word ptr [rbx + rax + 10],
    // dx; ret
    proven: "498b475841bb0c0000004901c3720b4d39f37706668954030ac3e8{trap}",
    reason: REASON.MEMORY,
  },
  {
    name: "a reference that may be null, and one that always is",
    arch: "x64",
    module: "(type $n (array i32)) (func (param nullref (ref null $n) i64))",
    // mov esi, [rcx + 4]; mov eax, [rdx]; ret
    refused: "8b71048b02c3",
    // mov esi, [rax + 4]; mov eax, [rdx]; ret
    proven: "8b70048b02c3",
    reason: REASON.ADDRESS,
  },
  {
    name: "the length of a table as an index of another",
    arch: "x64",
    module: "(table 1 funcref) (table 1 funcref) (func (result i64))",
    // mov ecx, [r15 + 104]; cmp ecx, [r15 + 88]; ja trap; sbb edx, edx; and edx, ecx; mov rcx, [r15 + 80]; mov rax,
    // [rcx + 8*rdx]; ret
    refused: "418b4f68413b4f58770d1bd223d1498b4f50488b04d1c3e8{trap}",
    // mov ecx, [r15 + 104]; cmp ecx, [r15 + 88]; jae trap; sbb edx, edx; and edx, ecx; mov rcx, [r15 + 80]; mov rax,
    // [rcx + 8*rdx]; ret
    proven: "418b4f68413b4f58730d1bd223d1498b4f50488b04d1c3e8{trap}",
    reason: REASON.TABLE,
  },
  {
    name: "the length of an array as an index of another",
    arch: "x64",
    module: "(type $n (array v128)) (func (param (ref $n) (ref $n) i64))",
    // mov ecx, [rcx + 4]; cmp ecx, [rax + 4]; ja trap; shl rcx, 4; movups xmm0, [rax + rcx + 8]; ret
    refused: "8b49043b4804770a48c1e1040f10440808c3e8{trap}",
    // mov ecx, [rcx + 4]; cmp ecx, [rax + 4]; jae trap; shl rcx, 4; movups xmm0, [rax + rcx + 8]; ret
    proven: "8b49043b4804730a48c1e1040f10440808c3e8{trap}",
    reason: REASON.OBJECT,
  },
  {
    name: "the descriptor of an import's type, at half its distance",
    arch: "x64",
    module: '(type $a (sub (func))) (import "m" "f" (func (type $a))) (func (result i32))',
    // mov ecx, [r15 + type of import 0]; shl rcx, 5; mov r8, [r15 + 32]; mov r8, [r8 + 512]; mov eax, [r8 + rcx + 24];
    // ret
    refused: "418b8f{import0}48c1e1054d8b47204d8b8000020000418b440818c3",
    // mov ecx, [r15 + type of import 0]; shl rcx, 6; mov r8, [r15 + 32]; mov r8, [r8 + 512]; mov eax, [r8 + rcx + 24];
    // ret
    proven: "418b8f{import0}48c1e1064d8b47204d8b8000020000418b440818c3",
    reason: REASON.ADDRESS,
  },
  {
    name: "an address behind a free slot that is not the link in it, as the head of the list",
    arch: "x64",
    module: "(type $s (struct (field i64 i64))) (func (result (ref null $s)))",
    // mov rcx, [r15 + 32]; mov rax, [rcx + 8]; test rax, rax; jne over; xor eax, eax; ret; over: lea rdx, [rax + 24];
    // cmp rdx, [rax]; jne next; mov rdx, [rax]; next: mov [rcx + 8], rdx; mov ecx, [r15 + type 0]; mov [rax], rcx; ret
    refused: "498b4f20488b41084885c0750331c0c3488d5018483b107503488b1048895108418b8f{type0}488908c3",
    // mov rcx, [r15 + 32]; mov rax, [rcx + 8]; test rax, rax; jne over; xor eax, eax; ret; over: lea rdx, [rax + 24];
    // cmp rdx, [rax]; je next; mov rdx, [rax]; next: mov [rcx + 8], rdx; mov ecx, [r15 + type 0]; mov [rax], rcx; ret
    proven: "498b4f20488b41084885c0750331c0c3488d5018483b107403488b1048895108418b8f{type0}488908c3",
    reason: REASON.OBJECT,
  },
  {
    name: "the lower half of an address that is compared with that of a link, as the head of the list",
    arch: "x64",
    module: "(type $s (struct (field i64 i64))) (func (result (ref null $s)))",
    // as above, but cmp edx, [rax]
    refused: "498b4f20488b41084885c0750331c0c3488d50183b107403488b1048895108418b8f{type0}488908c3",
    // mov rcx, [r15 + 32]; mov rax, [rcx + 8]; test rax, rax; jne over; xor eax, eax; ret; over: lea rdx, [rax + 24];
    // cmp rdx, [rax]; je next; mov rdx, [rax]; next: mov [rcx + 8], rdx; mov ecx, [r15 + type 0]; mov [rax], rcx; ret
    proven: "498b4f20488b41084885c0750331c0c3488d5018483b107403488b1048895108418b8f{type0}488908c3",
    reason: REASON.OBJECT,
  },
];

/** The module of a row, with an empty function. */
function moduleOf({ arch, module, isGuarded }: Row): MachineModule {
  const options: CompileOptions = {
    target: arch === "arm64" ? ARM64 : X64,
    features: featureSet(),
    optimizations: optimizationSet(),
    settings: codeSettings({ explicitBounds: isGuarded !== true }),
    cpu: new Set(),
  };
  const source = `(module ${module.slice(0, -1)} unreachable))`;
  const code = compileModule(NewEngine().parse(source), options);
  return machineModuleOf(code, options, stubContext(code.valid, options));
}

/** The bytes of `hex` at `start` of an image, and the tables that belong to them. */
class Assembled {
  readonly bytes: Uint8Array;
  readonly #trapAt: number[] = [];
  readonly #pollAt: number[] = [];
  readonly #returns: number[] = [];

  constructor(readonly row: Row, readonly module: MachineModule, hex: string, readonly start: number) {
    const words: Uint8Array[] = [];
    let at = start;
    for (const [, plain, word] of hex.matchAll(/([0-9a-f]+)|\{(\w+)\}/g)) {
      const bytes = plain !== undefined
        ? Uint8Array.from(plain.match(/../g) ?? [], (byte) => parseInt(byte, 16))
        : new Uint8Array(Int32Array.of(this.#wordFor(word, at)).buffer);
      words.push(bytes);
      at += bytes.length;
    }
    this.bytes = Uint8Array.from(words.flatMap((bytes) => [...bytes]));
  }

  /** The word that `name` is for, at `at` of the image. */
  #wordFor(name: string, at: number): number {
    const { module: { code: { layout }, stubs }, row: { arch }, start } = this;
    const next = at + 4;
    switch (name) {
      case "trap": {
        this.#trapAt.push(next);
        const stub = stubs.start[STUB.TRAP + TRAP.MEMORY_OUT_OF_BOUNDS];
        return arch === "x64" ? stub - next : 0x94000000 | ((stub - at) >> 2 & 0x3ffffff);
      }
      case "memory_set": {
        this.#returns.push(next);
        const stub = stubs.start[STUB.BUILTIN + BUILTIN.memory_set];
        return arch === "x64" ? stub - next : 0x94000000 | ((stub - at) >> 2 & 0x3ffffff);
      }
      case "self":
        this.#returns.push(next);
        return start - next;
      case "poll":
        this.#pollAt.push(at);
        return 0;
      case "caughtTag":
        return THREAD.CAUGHT_TAG;
      case "tags":
        return layout.tagsOffset;
      case "record":
        return layout.functionsOffset;
      case "import0":
        return layout.importsOffset + RECORD.TYPE_ID;
      case "import1":
        return layout.importsOffset + RECORD.SIZE + RECORD.TYPE_ID;
      case "type0":
        return layout.typeIdsOffset;
      case "type1":
        return layout.typeIdsOffset + 4;
    }
    throw new Error(`No word ${name}`);
  }

  /** The module with this code. Calls that may throw continue at the first NOP of three bytes, if there is one. */
  image(): MachineModule {
    const { bytes, module, row: { frame = 0 }, start } = this;
    const image = new Uint8Array(start + bytes.length);
    image.set(module.bytes.subarray(0, start));
    image.set(bytes, start);
    const landing = bytes.findIndex((byte, at) => byte === 0x0f && bytes[at + 1] === 0x1f);
    const callReturn = Int32Array.from(this.#returns);
    const tables = {
      ...module.tables,
      callReturn,
      callFrame: callReturn.map(() => frame),
      callLanding: callReturn.map(() => landing < 0 ? -1 : start + landing),
      callCross: new Uint8Array(callReturn.length),
      trapAt: Int32Array.from(this.#trapAt),
      pollAt: Int32Array.from(this.#pollAt),
      functionEnd: Int32Array.of(image.length),
    };
    return { ...module, bytes: image, tables };
  }
}

/** The reason why `hex` is not proven, undefined if it is. */
function reasonFor(row: Row, module: MachineModule, hex: string): string | undefined {
  const code = new Assembled(row, module, hex, module.tables.functionStart[0]);
  return verifyCode(machineOf(row.arch === "arm64" ? ARM64 : X64), code.image())[0]?.reason;
}

for (const row of ROWS) {
  Deno.test(`not proven on ${row.arch}: ${row.name}`, () => {
    const module = moduleOf(row);
    equal(reasonFor(row, module, row.proven), undefined);
    equal(reasonFor(row, module, row.refused), row.reason);
  });
}
