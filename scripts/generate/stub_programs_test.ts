/** Stub programs are what another assembler makes of them; the assembler reports what it cannot encode. */
import { deepEqual, equal, throws } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toHex } from "../../engine/base/hex.ts";
import { listCode as listArm64 } from "../../engine/backend_arm64/disassemble.ts";
import { UNSELECTED_ROWS as ARM64_UNSELECTED } from "../../engine/backend_arm64/insts_unselected.ts";
import { disassemble } from "../../engine/backend_x64/disassemble.ts";
import { readEncoding } from "../../engine/backend_x64/expand_rows.ts";
import { MAP } from "../../engine/backend_x64/instructions.ts";
import { UNSELECTED_ROWS as X64_UNSELECTED } from "../../engine/backend_x64/insts_unselected.ts";
import { assembleArm64 } from "./assembler/assemble_arm64.ts";
import { assembleX64 } from "./assembler/assemble_x64.ts";
import { assembleFor, PROGRAM_FILES } from "./stub_programs.ts";

/** The bytes that LLVM's assembler makes of a program. */
function assembledByLlvm(key: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "waft-programs-"));
  try {
    const [source, object, binary] = ["text.s", "text.o", "text.bin"].map((name) => join(folder, name));
    // Branches to a global label would be left to the linker.
    const lines = text.split("\n").filter((line) => !line.includes(".globl"));
    const syntax = key === "arm64" ? [] : [".intel_syntax noprefix"];
    writeFileSync(source, [...syntax, ...lines, ""].join("\n"));
    const triple = key === "arm64" ? "aarch64-linux" : "x86_64-linux";
    const runs: [string, string[]][] = [
      ["llvm-mc", [`--triple=${triple}`, "--filetype=obj", "-o", object, source]],
      ["llvm-objcopy", ["-O", "binary", "--only-section=.text", object, binary]],
    ];
    for (const [command, args] of runs) {
      const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
      equal(status, 0, stderr);
    }
    return toHex(readFileSync(binary));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** LLVM's tools are not part of the tests' requirements. */
const hasLlvm = ["llvm-mc", "llvm-objcopy"].every((command) =>
  spawnSync(command, ["--version"], { stdio: "ignore" }).status === 0
);

Deno.test({
  name: "LLVM's assembler makes the same bytes of every stub program",
  ignore: !hasLlvm,
  fn: () => {
    let programs = 0;
    for (const [path, texts] of PROGRAM_FILES) {
      for (const [name, program] of Object.entries(texts)) {
        for (const [key, text] of Object.entries(program)) {
          equal(toHex(assembleFor(key, text).bytes), assembledByLlvm(key, text), `${path} ${name} ${key}`);
          programs++;
        }
      }
    }
    equal(programs, 37);
  },
});

/** The bytes of a row with register 1 as r/m and register 0 as the other. */
function bytesOfRow(encoding: string): number[] {
  const { prefix, map, opcode, digit, wide, hasModrm } = readEncoding(encoding);
  const modrm = 0b11_000_001 | Math.max(digit, 0) << 3;
  return [
    ...(prefix === 0 ? [] : [prefix]),
    ...(wide === 0 ? [] : [0x48]),
    ...(map === MAP.OF ? [0x0f] : []),
    opcode,
    ...(hasModrm === 0 ? [] : [modrm]),
  ];
}

const REGISTERS: Readonly<Record<string, string>> = {
  r8: "al",
  rm8: "cl",
  rm32: "ecx",
  r64: "rax",
  rm64: "rcx",
  xmm: "xmm0",
  xm128: "xmm1",
};

Deno.test({
  name: "LLVM's disassembler reads the rows that only the kernel and stub programs use",
  ignore: !hasLlvm,
  fn: () => {
    for (const row of X64_UNSELECTED) {
      const [key, text, encoding] = row.split("|").map((part) => part.trim());
      if (key === "XGETBV") continue; // has a second byte of opcode; PROBE contains it
      const [mnemonic, ...operands] = text.split(" ");
      const names = operands.map((operand) => REGISTERS[operand.slice(operand.indexOf(":") + 1)]);
      const expected = `${mnemonic.replace("_", " ")} ${names.join(", ")}`.trim();
      const { stdout } = spawnSync("llvm-mc", ["--disassemble", "--triple=x86_64", "--output-asm-variant=1"], {
        input: bytesOfRow(encoding).map((byte) => `0x${byte.toString(16)}`).join(" "),
        encoding: "utf8",
      });
      const read = stdout.replace(".text", "").replaceAll(/\s+/g, " ").trim();
      equal(read.slice(0, expected.length), expected, key);
    }
  },
});

Deno.test("every row that compiled code does not use has a user", () => {
  const folder = new URL("../../engine/baseline/kernel/", import.meta.url);
  const kernel = ["machine", "vectors"].map((name) => readFileSync(new URL(`${name}_x64.ts`, folder), "utf8")).join("");
  const programs = PROGRAM_FILES.flatMap(([, texts]) => Object.values(texts).flatMap(Object.values)).join("");
  const isUsed = (key: string, mnemonic: string) =>
    kernel.includes(`x64.${key}`) || kernel.includes(`x64.${key.replace(/32|64/, "")}`) ||
    new RegExp(`^ *${mnemonic}\\b`, "m").test(programs);
  const keys = [...X64_UNSELECTED, ...ARM64_UNSELECTED].map((row) => row.split("|").map((part) => part.trim()));
  deepEqual(keys.filter(([key, text]) => !isUsed(key, text.split(" ")[0].replace("_", " "))), []);
});

Deno.test("branches are as short as their distance allows, in both directions", () => {
  const wide = "  movabs rax, 0x123456789abcdef0\n";
  const far = wide.repeat(13);
  for (
    const [text, bytes] of [
      ["  jmp end\nend:\n", "eb00"],
      [`start:\n${far}  je start\n`, "0f8478ffffff"],
      ["start:\n  call start\n", "e8fbffffff"],
      ["start:\n  lea rax, [rip + start]\n", "488d05f9ffffff"],
      // The first branch grows because the second one does.
      [`  jmp end\n${wide.repeat(12)}${"  nop\n".repeat(4)}  jmp far\nend:\n${far}far:\n`, "e981000000"],
    ]
  ) {
    const all = toHex(assembleX64(text).bytes);
    equal(all.startsWith(bytes) || all.endsWith(bytes), true, `${text}: ${all}`);
  }
  equal(toHex(assembleX64("  {disp32} jmp end\nend:\n").bytes), "e900000000");
  deepEqual(assembleX64("  .globl end\n  nop\n  .balign 8, 204\nend:\n  .quad 0\n").labels, { end: 8 });
});

Deno.test("an assembled line is disassembled to the same text", () => {
  const x64 = [
    "cmp r9d, dword ptr [rsp + 68]",
    "imul rax, qword ptr [rbx + 24], 100",
    "mov qword ptr [rcx + 8*rax], r13",
  ];
  for (const line of x64) {
    const { bytes } = assembleX64(line.replace("8*rax", "rax*8"));
    equal(disassemble(bytes, 0, bytes.length).trim(), line);
  }
  for (
    const line of [
      "ldp x0, x1, [x19, #40]",
      "add sp, sp, #3, lsl #12",
      "csel x11, x11, xzr, ls",
      "tbnz w0, #31, #0",
      "movk w12, #15258, lsl #16",
    ]
  ) {
    const { bytes } = assembleArm64(line.replace(/(tbnz.*)#0$/, "here:\n  $1here"));
    equal(listArm64(bytes, 0, 4)[0].text, line);
  }
});

Deno.test("a line that no row encodes is an error with the line", () => {
  throws(() => assembleX64("  mov rax, [rbx]\n  frob rax\n"), /frob rax: no instruction row has this form/);
  throws(() => assembleX64("  mov [rax], 1"), /the operand needs a size/);
  throws(() => assembleX64("  mov eax, 0x123456789"), /mov eax, 0x123456789: no instruction row/);
  throws(() => assembleX64("  jmp nowhere"), /there is no label nowhere/);
  throws(() => assembleX64("  .globl nothing\n  ret"), /\.globl nothing: there is no such label/);
  throws(() => assembleX64("here:\n  ret\nhere:\n"), /here: the label is there twice/);
  throws(() => assembleArm64("  add x0, x1, #5000"), /add x0, x1, #5000: 5000 does not fit into 12 bits/);
  throws(() => assembleArm64("  ldr x0, [x1, #12]"), /\[x1, #12\]/);
  throws(() => assembleArm64("  b nowhere"), /there is no label nowhere/);
});
