/**
 * The format of processed profiles of the Firefox profiler, version 49, as its documentation describes it: the tables
 * of a thread with their columns, and the ranges of indices. In: a parsed file. Out: the faults. Invariant: every table
 * and every column that the format requires is checked, and unknown ones are faults.
 */

/** Returns the fault of a value in row `row`; undefined if it fits. */
type Check = (value: unknown, row: number, tables: Tables) => string | undefined;
type Tables = Readonly<Record<string, { readonly length: number }>>;

const number: Check = (value) => Number.isFinite(value) ? undefined : "is not a number";
const whole: Check = (value) => Number.isInteger(value) ? undefined : "is not a whole number";
const flag: Check = (value) => typeof value === "boolean" ? undefined : "is not true or false";

/** An index into a table. */
function into(table: string): Check {
  return (value, _, tables) => {
    const length = tables[table]?.length ?? 0;
    return Number.isInteger(value) && Number(value) >= 0 && Number(value) < length
      ? undefined
      : `is outside of ${table}, which has ${length} rows`;
  };
}

function orNull(check: Check): Check {
  return (value, row, tables) => value === null ? undefined : check(value, row, tables);
}

/** An index of an earlier row. */
const earlier: Check = (value, row) =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) < row ? undefined : "is not an earlier row";

/** Columns that are null if they have no values. */
const ABSENT: ReadonlySet<string> = new Set(["samples.weight"]);

const COLUMNS: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  samples: { stack: orNull(into("stackTable")), time: number, weight: orNull(number) },
  stackTable: {
    frame: into("frameTable"),
    prefix: orNull(earlier),
    category: into("categories"),
    subcategory: whole,
  },
  frameTable: {
    address: whole,
    inlineDepth: whole,
    category: orNull(into("categories")),
    subcategory: orNull(whole),
    func: into("funcTable"),
    nativeSymbol: orNull(into("nativeSymbols")),
    innerWindowID: orNull(whole),
    implementation: orNull(into("stringArray")),
    line: orNull(whole),
    column: orNull(whole),
    optimizations: orNull(number),
  },
  funcTable: {
    name: into("stringArray"),
    isJS: flag,
    relevantForJS: flag,
    resource: (value, row, tables) => value === -1 ? undefined : into("resourceTable")(value, row, tables),
    fileName: orNull(into("stringArray")),
    lineNumber: orNull(whole),
    columnNumber: orNull(whole),
  },
  resourceTable: { lib: orNull(whole), name: into("stringArray"), host: orNull(into("stringArray")), type: whole },
  nativeSymbols: { libIndex: whole, address: whole, name: into("stringArray"), functionSize: orNull(whole) },
  markers: {
    data: () => undefined,
    name: into("stringArray"),
    startTime: orNull(number),
    endTime: orNull(number),
    phase: whole,
    category: into("categories"),
  },
};

/** Fields of a thread beside its tables, and of `meta`, by their types; `?` stands for null. */
const THREAD = {
  name: "string",
  processName: "string",
  processType: "string",
  isMainThread: "boolean",
  pid: "string",
  tid: "number",
  registerTime: "number",
  unregisterTime: "number?",
  processStartupTime: "number",
  processShutdownTime: "number?",
  pausedRanges: "array",
  stringArray: "array",
} as const;
const META = {
  product: "string",
  interval: "number",
  startTime: "number",
  processType: "number",
  stackwalk: "number",
  debug: "boolean",
  version: "number",
  preprocessedProfileVersion: "number",
  categories: "array",
  markerSchema: "array",
} as const;

type Fields = Readonly<Record<string, unknown>>;

/** The faults of a profile; none if the format permits it. */
export function firefoxFaults(profile: Fields): string[] {
  const meta = profile.meta as Fields;
  const faults = fieldFaults("meta", meta, META);
  if (meta.preprocessedProfileVersion !== 49) faults.push("the version is not 49");
  for (const name of ["libs", "pages", "counters", "threads"]) {
    if (!Array.isArray(profile[name])) faults.push(`${name} is not a list`);
  }
  for (const thread of profile.threads as Fields[]) faults.push(...threadFaults(thread, meta.categories as unknown[]));
  return faults;
}

function threadFaults(thread: Fields, categories: readonly unknown[]): string[] {
  const faults = fieldFaults("thread", thread, THREAD);
  const tables = { ...thread, categories } as unknown as Tables;
  for (const key of Object.keys(thread)) {
    if (!(key in COLUMNS) && !(key in THREAD)) faults.push(`thread.${key} is unknown`);
  }
  for (const text of thread.stringArray as unknown[]) {
    if (typeof text !== "string") faults.push("stringArray has a value that is not text");
  }
  for (const [name, columns] of Object.entries(COLUMNS)) faults.push(...tableFaults(name, columns, tables));
  const { time } = thread.samples as { time: number[] };
  if (time.some((value, k) => k > 0 && value < time[k - 1])) faults.push("samples.time is not ascending");
  return faults;
}

function tableFaults(name: string, columns: Readonly<Record<string, Check>>, tables: Tables): string[] {
  const table = tables[name] as Fields & { readonly length: number } | undefined;
  if (table === undefined) return [`${name} is missing`];
  const faults: string[] = [];
  for (const key of Object.keys(table)) {
    if (key !== "length" && key !== "weightType" && !(key in columns)) faults.push(`${name}.${key} is unknown`);
  }
  for (const [column, check] of Object.entries(columns)) {
    const values = table[column];
    if (values === null && ABSENT.has(`${name}.${column}`)) continue;
    if (!Array.isArray(values) || values.length !== table.length) {
      faults.push(`${name}.${column} does not have ${table.length} values`);
      continue;
    }
    values.forEach((value, row) => {
      const fault = check(value, row, tables);
      if (fault !== undefined) faults.push(`${name}.${column}[${row}] ${fault}`);
    });
  }
  return faults;
}

function fieldFaults(name: string, value: Fields, types: Readonly<Record<string, string>>): string[] {
  return Object.entries(types).flatMap(([field, type]) => {
    const found = value[field];
    const fits = type === "array"
      ? Array.isArray(found)
      : typeof found === type.replace("?", "") || (type.endsWith("?") && found === null);
    return fits ? [] : [`${name}.${field} is not of type ${type}`];
  });
}
