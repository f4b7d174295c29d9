/**
 * Modules named on the command line. Input: the word. Output: the path to read; by convention `-` means standard input,
 * and as an output path standard output.
 */

/** The path to read for `word`. */
export function inputPath(word: string): string {
  return word === "-" ? "/dev/stdin" : word;
}
