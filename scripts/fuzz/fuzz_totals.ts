/**
 * The counts of a fuzzing run. In: the counts of single cases and of child processes. Out: their sums, printed at the
 * end.
 */

/** Cases by generator, their modules, runs and calls in them, cases by kind of outcome. */
const COUNTERS = [
  "own",
  "binaryen",
  "smith",
  "modules",
  "runs",
  "calls",
  "traps",
  "exhausted",
  "unsupported",
  "nanOnly",
  "depthOnly",
  "placeOnly",
  "found",
  "crashed",
] as const;

/** Numbers by name. */
type Counts = Record<string, number>;

/** The sums of the children's reports. */
export interface Totals extends Record<typeof COUNTERS[number], number> {
  /** By feature: the number of own cases that executed an instruction of it, and of those that had to. */
  readonly executed: Counts;
  readonly forced: Counts;
  /** By scenario: the number of cases, and of those that reached it. */
  readonly scenarios: Record<string, { cases: number; reached: number }>;
}

export function emptyTotals(): Totals {
  const zeros = Object.fromEntries(COUNTERS.map((name) => [name, 0])) as Record<typeof COUNTERS[number], number>;
  return { ...zeros, executed: {}, forced: {}, scenarios: {} };
}

/** Adds 1 for each of `names`. */
export function countNames(sums: Counts, names: Iterable<string>): void {
  for (const name of names) sums[name] = (sums[name] ?? 0) + 1;
}

function addCounts(sums: Counts, counts: Readonly<Counts>): void {
  for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
}

export function addScenario({ scenarios }: Totals, name: string, counts: { cases: number; reached: number }): void {
  const sums = scenarios[name] ??= { cases: 0, reached: 0 };
  sums.cases += counts.cases;
  sums.reached += counts.reached;
}

/** Adds the totals of a child process. */
export function addTotals(totals: Totals, part: Totals): void {
  for (const name of COUNTERS) totals[name] = (totals[name] ?? 0) + part[name]; // older states lack some
  addCounts(totals.executed, part.executed);
  addCounts(totals.forced, part.forced);
  for (const [name, counts] of Object.entries(part.scenarios)) addScenario(totals, name, counts);
}

/** Prints the totals of a run of `seconds`. */
export function report(totals: Totals, seconds: number): void {
  const { executed, forced, scenarios, ...counts } = totals;
  console.log(JSON.stringify(counts));
  printCounts("Own cases that executed an instruction of", executed);
  printCounts("Own cases that were forced to use", forced);
  const reached = Object.entries(scenarios).map(([name, { cases, reached }]) => [name, `${reached} of ${cases}`]);
  printCounts("Cases that reached their scenario", Object.fromEntries(reached));
  const cases = totals.own + totals.binaryen + totals.smith;
  const each = (seconds * 1000 / cases).toFixed(1);
  console.log(
    `${cases} cases with ${totals.modules} modules in ${
      seconds.toFixed(0)
    } s (${each} ms each), ${totals.found} differ, ${totals.crashed} crashed`,
  );
}

function printCounts(title: string, counts: Readonly<Record<string, number | string>>): void {
  const rows = Object.entries(counts).sort();
  if (rows.length === 0) return;
  console.log(title);
  for (const [name, count] of rows) console.log(`  ${name.padEnd(28)} ${count}`);
}
