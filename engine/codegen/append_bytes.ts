/** Appends stored code to an image. A separate file: no code that is generated needs it. */
import type { MachineCode } from "./machine_code.ts";

export function appendBytes(code: MachineCode, bytes: Uint8Array): void {
  code.reserve(bytes.length);
  code.bytes.set(bytes, code.length);
  code.length += bytes.length;
}
