/**
 * Modules that differ only in their bytes, to defeat caches keyed by the bytes. In: a module and a number. Out: the
 * module with the number in a custom section at its end.
 */
export function withSalt(bytes: Uint8Array, salt: number): Uint8Array<ArrayBuffer> {
  const section = [0, 6, 1, 0x73, salt & 255, (salt >> 8) & 255, (salt >> 16) & 255, (salt >>> 24) & 255];
  const salted = new Uint8Array(bytes.length + section.length);
  salted.set(bytes);
  salted.set(section, bytes.length);
  return salted;
}
