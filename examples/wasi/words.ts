// deno-lint-ignore-file
// @ts-nocheck: AssemblyScript, compiled by examples/wasi/build.sh
/**
 * Counts lines, words and bytes of standard input and prints the most frequent words: AssemblyScript with direct WASI
 * calls.
 */

declare function fd_read(fd: i32, vectors: usize, count: i32, done: usize): i32;

declare function fd_write(fd: i32, vectors: usize, count: i32, done: usize): i32;

declare function proc_exit(status: i32): void;

const BUFFER: i32 = 4096;
const buffer = new StaticArray<u8>(BUFFER);
const vector = new StaticArray<u32>(3);

function read(): i32 {
  vector[0] = <u32> changetype<usize>(buffer);
  vector[1] = BUFFER;
  const at = changetype<usize>(vector);
  if (fd_read(0, at, 1, at + 8) != 0) proc_exit(1);
  return vector[2];
}

function print(text: string): void {
  const bytes = String.UTF8.encode(text + "\n");
  vector[0] = <u32> changetype<usize>(bytes);
  vector[1] = bytes.byteLength;
  const at = changetype<usize>(vector);
  if (fd_write(1, at, 1, at + 8) != 0) proc_exit(1);
}

function isLetter(byte: u8): bool {
  return (byte >= 97 && byte <= 122) || (byte >= 65 && byte <= 90) || byte >= 128;
}

export function _start(): void {
  const counts = new Map<string, i32>();
  let lines = 0;
  let bytes = 0;
  let words = 0;
  let word = "";
  for (;;) {
    const got = read();
    bytes += got;
    for (let i = 0; i < got; i++) {
      const byte = buffer[i];
      if (byte == 10) lines++;
      if (isLetter(byte)) {
        word += String.fromCharCode(byte | 32);
      } else if (word.length > 0) {
        counts.set(word, (counts.has(word) ? counts.get(word) : 0) + 1);
        words++;
        word = "";
      }
    }
    if (got == 0) break;
  }
  if (word.length > 0) {
    counts.set(word, (counts.has(word) ? counts.get(word) : 0) + 1);
    words++;
  }
  print(lines.toString() + " lines, " + words.toString() + " words, " + bytes.toString() + " bytes");
  const names = counts.keys();
  for (let round = 0; round < 5 && round < names.length; round++) {
    let best = -1;
    for (let i = 0; i < names.length; i++) {
      if (names[i].length == 0) continue;
      if (best < 0) best = i;
      else {
        const difference = counts.get(names[i]) - counts.get(names[best]);
        if (difference > 0 || (difference == 0 && names[i] < names[best])) best = i;
      }
    }
    if (best < 0) break;
    print(counts.get(names[best]).toString() + " " + names[best]);
    names[best] = "";
  }
}
