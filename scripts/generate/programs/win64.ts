/**
 * The border between the two calling conventions of x64: code that Windows calls, around code that follows System V, as
 * all of waft's machine code does. In: the lines that move the parameters and call. Out: those, between lines that keep
 * the registers that only Windows' convention preserves: rdi, rsi and xmm6 to xmm15. The stack is aligned at the call.
 *
 * Sources: System V ABI, AMD64; "x64 calling convention" of Microsoft's documentation.
 */
const PRESERVED = ["xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"];
/** Bytes below the two general registers: the vectors, and 8 bytes of padding. */
const FRAME = 16 * PRESERVED.length + 8;

/** A function of Windows' convention, up to its return, around `call`. */
export function keepingWin64Registers(call: string): string {
  return `  push rdi
  push rsi
  sub rsp, ${FRAME}
${PRESERVED.map((register, k) => `  movups [rsp + ${16 * k}], ${register}`).join("\n")}
${call}
${PRESERVED.map((register, k) => `  movups ${register}, [rsp + ${16 * k}]`).join("\n")}
  add rsp, ${FRAME}
  pop rsi
  pop rdi
  ret`;
}
