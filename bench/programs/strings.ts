// deno-lint-ignore-file
// @ts-nocheck: AssemblyScript, compiled by bench/build.sh
/**
 * AssemblyScript: classes, arrays and a map with the language's own allocator and no collector; counts words of
 * generated text.
 */
class Entry {
  constructor(public key: u32, public count: i32, public next: Entry | null) {}
}

class Counter {
  private buckets: StaticArray<Entry | null> = new StaticArray<Entry | null>(256);

  add(key: u32): i32 {
    const slot = (key * 2654435769) >> 24;
    let entry = this.buckets[slot];
    while (entry !== null) {
      if (entry.key == key) return ++entry.count;
      entry = entry.next;
    }
    this.buckets[slot] = new Entry(key, 1, this.buckets[slot]);
    return 1;
  }
}

let seed: u32 = 1;

function random(): u32 {
  seed ^= seed << 13;
  seed ^= seed >> 17;
  seed ^= seed << 5;
  return seed;
}

const counter = new Counter();
const text = new StaticArray<u8>(65536);

export function run(n: i32): i32 {
  seed = 2463534242;
  for (let i = 0; i < text.length; i++) text[i] = random() % 6 == 0 ? 32 : <u8> (97 + random() % 3);
  let sum: u32 = 0;
  for (let round = 0; round < n; round++) {
    let word: u32 = 0;
    for (let i = 0; i < text.length; i++) {
      const letter = text[i];
      if (letter != 32) {
        word = word * 31 + letter;
      } else if (word != 0) {
        sum += (word & 1023) + random() % 3;
        counter.add(word & 4095);
        word = 0;
      }
    }
  }
  return sum;
}
