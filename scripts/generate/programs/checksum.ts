/**
 * The checksum of artifacts (engine/artifact/checksum.ts) as a routine that the process stub `call` enters in place of
 * a thunk: JavaScript that runs for the first time takes 10 to 30 times as long. In: the thread; the address of the
 * bytes in CALL_CODE, their number in slot 0, the four words of the checksum in the slots after it. Out: 0 in slot 0 if
 * the bytes have this checksum. Invariant: the context register and those of the memory are unchanged.
 */
import { THREAD } from "../../../engine/abi/context_layout.ts";
import { CHECKSUM_FACTORS } from "../../../engine/artifact/checksum.ts";

const SHIFT = 15;
/** The offset of a slot in the thread state. */
const slot = (index: number): number => THREAD.SLOTS + index * THREAD.SLOT_SIZE;

/** The lines of all four lanes. */
function lanes(lines: (lane: number) => readonly string[]): string {
  return [0, 1, 2, 3].flatMap(lines).map((line) => `  ${line}`).join("\n");
}

const X64_LANES = ["eax", "edx", "r8d", "r9d"];

const X64 = `
  mov rsi, [rdi + ${THREAD.CALL_CODE}]
  mov ecx, [rdi + ${slot(0)}]
  mov eax, ecx
  shr eax, 2
${lanes((k) => k === 0 ? [] : [`mov ${X64_LANES[k]}, ${CHECKSUM_FACTORS[k]}`])}
  add rcx, rsi
again:
${
  lanes((k) => [
    `xor ${X64_LANES[k]}, [rsi + ${4 * k}]`,
    `imul ${X64_LANES[k]}, ${X64_LANES[k]}, ${CHECKSUM_FACTORS[k]}`,
    `mov r10d, ${X64_LANES[k]}`,
    `shr r10d, ${SHIFT}`,
    `xor ${X64_LANES[k]}, r10d`,
  ])
}
  add rsi, 16
  cmp rsi, rcx
  jb again
${lanes((k) => [`xor ${X64_LANES[k]}, [rdi + ${slot(1 + k)}]`, ...(k === 0 ? [] : [`or eax, ${X64_LANES[k]}`])])}
  mov [rdi + ${slot(0)}], eax
  ret
`;

const FACTOR = (k: number): string => `w${3 + k}`;
const ARM64_LANES = ["w2", "w7", "w8", "w10"];

const ARM64 = `
  ldr x0, [x9, #${THREAD.CALL_CODE}]
  ldr w1, [x9, #${slot(0)}]
${
  lanes((k) => [
    `movz ${FACTOR(k)}, #${CHECKSUM_FACTORS[k] & 0xffff}`,
    `movk ${FACTOR(k)}, #${CHECKSUM_FACTORS[k] >>> 16}, lsl #16`,
    k === 0 ? "ubfm w2, w1, #2, #31" : `mov ${ARM64_LANES[k]}, ${FACTOR(k)}`,
  ])
}
  add x1, x0, x1
again:
${
  lanes((k) => [
    `ldr w11, [x0, #${4 * k}]`,
    `eor ${ARM64_LANES[k]}, ${ARM64_LANES[k]}, w11`,
    `madd ${ARM64_LANES[k]}, ${ARM64_LANES[k]}, ${FACTOR(k)}, wzr`,
    `ubfm w11, ${ARM64_LANES[k]}, #${SHIFT}, #31`,
    `eor ${ARM64_LANES[k]}, ${ARM64_LANES[k]}, w11`,
  ])
}
  add x0, x0, #16
  cmp x0, x1
  b.lo again
${
  lanes((k) => [
    `ldr w11, [x9, #${slot(1 + k)}]`,
    `eor ${ARM64_LANES[k]}, ${ARM64_LANES[k]}, w11`,
    ...(k === 0 ? [] : [`orr w2, w2, ${ARM64_LANES[k]}`]),
  ])
}
  str w2, [x9, #${slot(0)}]
  ret
`;

/** The routine by processor. */
export const CHECKSUM = { x64: X64, arm64: ARM64 } as const;
