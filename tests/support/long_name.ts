/**
 * A module whose text is far larger than the module: a function with a name of a megabyte, and many calls of it. Out:
 * the module in binary form; its export `f` makes the calls.
 */
export function longNameModule(calls: number): Uint8Array<ArrayBuffer> {
  const length = 1 << 20;
  const callee = [0, 0x0b];
  const caller = [0, ...new Array(calls).fill([0x10, 0]).flat(), 0x0b];
  const name = [...leb(1), 0, ...leb(length)];
  const map = [1, ...leb(name.length + length), ...name];
  const names = [4, ...new TextEncoder().encode("name"), ...map];
  const head = [
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 0, 0]),
    ...section(3, [2, 0, 0]),
    ...section(7, [1, 1, 0x66, 0, 1]),
    ...section(10, [2, ...leb(callee.length), ...callee, ...leb(caller.length), ...caller]),
    ...[0, ...leb(names.length + length), ...names],
  ];
  const bytes = new Uint8Array(head.length + length).fill(0x6e);
  bytes.set(head);
  return bytes;
}

function leb(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...leb(value >>> 7)];
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...leb(content.length), ...content];
}
