/**
 * Import cycles. In: files and their imports. Out: the strongly connected components of more than one file (Tarjan,
 * "Depth-first search and linear graph algorithms", 1972).
 */

/** The cycles among `files`; imports of other files do not count. */
export function importCycles(files: readonly string[], importsOf: (file: string) => readonly string[]): string[][] {
  const members = new Set(files);
  const order = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (file: string): number => {
    const index = order.size;
    let least = index;
    order.set(file, index);
    stack.push(file);
    for (const target of importsOf(file)) {
      if (!members.has(target)) continue;
      if (!order.has(target)) least = Math.min(least, visit(target));
      else if (stack.includes(target)) least = Math.min(least, order.get(target)!);
    }
    if (least === index) {
      const component = stack.splice(stack.indexOf(file));
      if (component.length > 1) found.push(component.sort());
    }
    return least;
  };
  for (const file of files) if (!order.has(file)) visit(file);
  return found;
}
