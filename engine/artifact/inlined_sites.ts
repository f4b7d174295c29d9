/**
 * Inlined calls as words, for artifacts and tokens: per function its index, the number of sites, and three words per
 * site. Invariant: `readInlined` returns the sites that `writeInlined` received.
 */
import type { InlineSite, InlineSites } from "../link/code_description.ts";

export function writeInlined(sites: InlineSites): Int32Array {
  const words: number[] = [];
  for (const [index, list] of sites) {
    words.push(index, list.length);
    for (const { parent, callPos, funcIndex } of list) words.push(parent, callPos, funcIndex);
  }
  return Int32Array.from(words);
}

export function readInlined(words: Int32Array): Map<number, InlineSite[]> {
  const sites = new Map<number, InlineSite[]>();
  for (let at = 0; at + 2 <= words.length;) {
    const list: InlineSite[] = [];
    const index = words[at];
    const count = words[at + 1];
    at += 2;
    for (let k = 0; k < count && at + 3 <= words.length; k++, at += 3) {
      list.push({ parent: words[at], callPos: words[at + 1], funcIndex: words[at + 2] });
    }
    sites.set(index, list);
  }
  return sites;
}
