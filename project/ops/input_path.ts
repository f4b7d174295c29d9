/**
 * Modules named on the command line. In: the word. Out: the path to read; `-` is standard input, as it is for other tools. Output goes to standard output
 * for `-`.
 */

/** Where to read what `word` names. */
export function inputPath(word: string): string {
  return word === "-" ? "/dev/stdin" : word;
}
