/** stub */
export function disassemble(_bytes: Uint8Array, _start: number, _end: number): string {
  return "";
}
