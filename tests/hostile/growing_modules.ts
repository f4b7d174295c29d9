/**
 * Families of modules of any size: each repeats one part of a module and is otherwise minimal. In: a count.
 * Out: the binary form of a valid module. For tests of how the cost of a stage grows with the size of its input.
 */
import { ByteWriter } from "../../engine/base/bytes.ts";
import { SECTION } from "../../engine/wasm/section_ids.ts";

const HEADER = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
const END = 0x0b;
/** The type section of most families: type 0 is `[] -> []`. */
const NO_SIGNATURE = [0x60, 0, 0];

/** A section's id and the writer of its contents. */
type Section = readonly [id: number, write: (writer: ByteWriter) => void];

/** A module of these sections. */
function moduleOf(...sections: Section[]): Uint8Array {
  const writer = new ByteWriter();
  writer.raw(Uint8Array.from(HEADER));
  for (const [id, write] of sections) {
    writer.u8(id);
    const mark = writer.beginSized();
    write(writer);
    writer.endSized(mark);
  }
  return writer.finish();
}

/** A section that is a vector of `count` entries, the same bytes each or written by index. */
function vector(id: number, count: number, entry: readonly number[] | ((w: ByteWriter, i: number) => void)): Section {
  return [id, (writer) => entries(writer, count, entry)];
}

function entries(
  writer: ByteWriter,
  count: number,
  entry: readonly number[] | ((w: ByteWriter, i: number) => void),
): void {
  writer.u32(count);
  const bytes = typeof entry === "function" ? undefined : Uint8Array.from(entry);
  for (let i = 0; i < count; i++) {
    if (bytes !== undefined) writer.raw(bytes);
    else (entry as (w: ByteWriter, i: number) => void)(writer, i);
  }
}

const TYPE = vector(SECTION.type, 1, NO_SIGNATURE);
const MEMORY = vector(SECTION.memory, 1, [0, 1]);

/** Sections of one function of type 0 with these local declarations and instructions; the final `end` is added. */
function oneFunction(code: (writer: ByteWriter) => void, locals: readonly number[] = [0]): Section[] {
  return [
    vector(SECTION.function, 1, [0]),
    vector(SECTION.code, 1, (writer) => {
      const body = writer.beginSized();
      writer.raw(Uint8Array.from(locals));
      code(writer);
      writer.u8(END);
      writer.endSized(body);
    }),
  ];
}

function body(code: (writer: ByteWriter) => void, locals?: readonly number[]): Uint8Array {
  return moduleOf(TYPE, ...oneFunction(code, locals));
}

function times(writer: ByteWriter, count: number, ...bytes: number[]): void {
  const unit = Uint8Array.from(bytes);
  for (let i = 0; i < count; i++) writer.raw(unit);
}

/** Empty functions. */
function functions(count: number): Section[] {
  return [vector(SECTION.function, count, [0]), vector(SECTION.code, count, [2, 0, END])];
}

/** One export for each index of a kind. */
function exportsOf(count: number, kind: number, index: (i: number) => number = (i) => i): Section {
  return vector(SECTION.export, count, (writer, i) => {
    writer.name(`x${i}`);
    writer.u8(kind);
    writer.u32(index(i));
  });
}

/** One import for each index, with these bytes as its description. */
function importsOf(count: number, ...description: number[]): Section {
  return vector(SECTION.import, count, (writer, i) => {
    writer.name(`m${i % 7}`);
    writer.name(`x${i}`);
    writer.raw(Uint8Array.from(description));
  });
}

/** A custom section "name" of one subsection. */
function names(id: number, write: (writer: ByteWriter) => void): Section {
  return [SECTION.custom, (writer) => {
    writer.name("name");
    writer.u8(id);
    const mark = writer.beginSized();
    write(writer);
    writer.endSized(mark);
  }];
}

function nameEntry(writer: ByteWriter, i: number): void {
  writer.u32(i);
  writer.name(`n${i}`);
}

/** Modules that differ in one count. */
export interface Family {
  /** The part that is repeated. */
  readonly name: string;
  /**
   * The smaller count to measure: large enough that a quadratic stage shows at GROWTH times the count
   * (support/linear_growth.ts).
   */
  readonly count: number;
  readonly make: (count: number) => Uint8Array;
}

/** Every count of a module. */
export const FAMILIES: readonly Family[] = [
  {
    name: "types",
    count: 600,
    make: (n) =>
      moduleOf(vector(SECTION.type, n, (w, i) => {
        // Types that differ: their parameters are the digits of their number.
        w.u8(0x60);
        entries(w, 14, (out, digit) => out.u8(0x7f - ((i >> digit) & 1)));
        w.u8(0);
      })),
  },
  { name: "equal types", count: 4000, make: (n) => moduleOf(vector(SECTION.type, n, [0x60, 1, 0x7f, 0])) },
  {
    name: "types of one recursive group",
    count: 2000,
    make: (n) =>
      moduleOf([SECTION.type, (w) => {
        w.raw(Uint8Array.of(1, 0x4e));
        entries(w, n, (out, i) => {
          out.raw(Uint8Array.of(0x5f, 1, 0x63));
          out.s33((i + 1) % n);
          out.u8(0);
        });
      }]),
  },
  {
    name: "recursive groups",
    count: 2000,
    make: (n) =>
      moduleOf(vector(SECTION.type, n, (w, i) => {
        w.raw(Uint8Array.of(0x5f, 1, 0x63));
        w.s33(i);
        w.u8(0);
      })),
  },
  {
    name: "subtypes of one type",
    count: 2000,
    make: (n) =>
      moduleOf(
        vector(SECTION.type, n + 1, (w, i) =>
          w.raw(Uint8Array.from(i === 0 ? [0x50, 0, 0x5f, 0] : [0x50, 1, 0, 0x5f, 0]))),
      ),
  },
  {
    name: "fields of one structure",
    count: 600,
    make: (n) =>
      moduleOf([SECTION.type, (w) => {
        w.raw(Uint8Array.of(1, 0x5f));
        entries(w, n, [0x7f, 1]);
      }]),
  },
  { name: "imported functions", count: 1000, make: (n) => moduleOf(TYPE, importsOf(n, 0, 0)) },
  { name: "imported globals", count: 1000, make: (n) => moduleOf(importsOf(n, 3, 0x7f, 0)) },
  { name: "imported tables", count: 1000, make: (n) => moduleOf(importsOf(n, 1, 0x70, 0, 0)) },
  { name: "imported tags", count: 1000, make: (n) => moduleOf(TYPE, importsOf(n, 4, 0, 0)) },
  {
    name: "imports of one name",
    count: 1000,
    make: (n) =>
      moduleOf(vector(SECTION.import, n, (w) => {
        w.name("m0");
        w.name("x");
        w.raw(Uint8Array.of(3, 0x7f, 0));
      })),
  },
  { name: "functions", count: 500, make: (n) => moduleOf(TYPE, ...functions(n)) },
  {
    name: "functions that call the next",
    count: 500,
    make: (n) =>
      moduleOf(
        TYPE,
        vector(SECTION.function, n, [0]),
        vector(SECTION.code, n, (w, i) => {
          const mark = w.beginSized();
          w.raw(Uint8Array.of(0, 0x10));
          w.u32((i + 1) % n);
          w.u8(END);
          w.endSized(mark);
        }),
      ),
  },
  { name: "tables", count: 2000, make: (n) => moduleOf(vector(SECTION.table, n, [0x70, 0, 1])) },
  { name: "memories", count: 20, make: (n) => moduleOf(vector(SECTION.memory, n, [0, 0])) },
  { name: "tags", count: 2000, make: (n) => moduleOf(TYPE, vector(SECTION.tag, n, [0, 0])) },
  { name: "globals", count: 2000, make: (n) => moduleOf(vector(SECTION.global, n, [0x7f, 1, 0x41, 7, END])) },
  {
    name: "globals that read the one before",
    count: 2000,
    make: (n) =>
      moduleOf(vector(SECTION.global, n, (w, i) => {
        w.raw(Uint8Array.of(0x7f, 0, i === 0 ? 0x41 : 0x23));
        w.u32(Math.max(0, i - 1));
        w.u8(END);
      })),
  },
  {
    name: "exported functions",
    count: 500,
    make: (n) => {
      const [declared, code] = functions(n);
      return moduleOf(TYPE, declared, exportsOf(n, 0), code);
    },
  },
  {
    name: "exports of one function",
    count: 2000,
    make: (n) => {
      const [declared, code] = functions(1);
      return moduleOf(TYPE, declared, exportsOf(n, 0, () => 0), code);
    },
  },
  {
    name: "exported globals",
    count: 1000,
    make: (n) => moduleOf(vector(SECTION.global, n, [0x7f, 1, 0x41, 7, END]), exportsOf(n, 3)),
  },
  {
    name: "exported tables",
    count: 1000,
    make: (n) => moduleOf(vector(SECTION.table, n, [0x70, 0, 0]), exportsOf(n, 1)),
  },
  { name: "exported tags", count: 1000, make: (n) => moduleOf(TYPE, vector(SECTION.tag, n, [0, 0]), exportsOf(n, 4)) },
  {
    name: "element segments",
    count: 2000,
    make: (n) => {
      const [declared, code] = functions(1);
      const active = [0, 0x41, 0, END, 1, 0];
      return moduleOf(
        TYPE,
        declared,
        vector(SECTION.table, 1, [0x70, 0, 1]),
        vector(SECTION.element, n, active),
        code,
      );
    },
  },
  {
    name: "elements of one segment",
    count: 8000,
    make: (n) => {
      const [declared, code] = functions(1);
      return moduleOf(
        TYPE,
        declared,
        [SECTION.table, (w) => {
          w.raw(Uint8Array.of(1, 0x70, 0));
          w.u32(n);
        }],
        [SECTION.element, (w) => {
          w.raw(Uint8Array.of(1, 0, 0x41, 0, END));
          entries(w, n, [0]);
        }],
        code,
      );
    },
  },
  {
    name: "element expressions of one segment",
    count: 4000,
    make: (n) =>
      moduleOf([SECTION.element, (w) => {
        w.raw(Uint8Array.of(1, 5, 0x70));
        entries(w, n, [0xd0, 0x70, END]);
      }]),
  },
  {
    name: "data segments",
    count: 2000,
    make: (n) => moduleOf(MEMORY, vector(SECTION.data, n, [0, 0x41, 0, END, 1, 0x61])),
  },
  { name: "passive data segments", count: 2000, make: (n) => moduleOf(vector(SECTION.data, n, [1, 1, 0x61])) },
  {
    name: "bytes of one data segment",
    count: 8000,
    make: (n) =>
      moduleOf([SECTION.memory, (w) => {
        w.raw(Uint8Array.of(1, 0));
        w.u32((n >> 16) + 1);
      }], [SECTION.data, (w) => {
        w.raw(Uint8Array.of(1, 0, 0x41, 0, END));
        entries(w, n, [0x61]);
      }]),
  },
  {
    name: "custom sections",
    count: 1000,
    make: (n) => moduleOf(...Array.from({ length: n }, (_, i): Section => [SECTION.custom, (w) => w.name(`c${i}`)])),
  },
  {
    name: "name sections",
    count: 1000,
    make: (n) => moduleOf(...Array.from({ length: n }, (): Section => [SECTION.custom, (w) => w.name("name")])),
  },
  {
    name: "names of functions",
    count: 500,
    make: (n) => moduleOf(TYPE, ...functions(n), names(1, (w) => entries(w, n, nameEntry))),
  },
  {
    name: "equal names of functions",
    count: 500,
    make: (n) =>
      moduleOf(
        TYPE,
        ...functions(n),
        names(1, (w) =>
          entries(w, n, (out, i) => {
            out.u32(i);
            out.name("same");
          })),
      ),
  },
  {
    name: "names of globals",
    count: 1000,
    make: (n) =>
      moduleOf(vector(SECTION.global, n, [0x7f, 1, 0x41, 7, END]), names(7, (w) => entries(w, n, nameEntry))),
  },
  {
    name: "names of locals",
    count: 1000,
    make: (n) =>
      moduleOf(
        TYPE,
        ...oneFunction(() => {}, localsOf(n)),
        names(2, (w) => {
          w.u8(1);
          w.u8(0);
          entries(w, n, nameEntry);
        }),
      ),
  },
  {
    name: "names of labels",
    count: 1000,
    make: (n) =>
      moduleOf(
        TYPE,
        ...oneFunction((w) => times(w, n, 0x02, 0x40, END)),
        names(3, (w) => {
          w.u8(1);
          w.u8(0);
          entries(w, n, nameEntry);
        }),
      ),
  },
  { name: "locals", count: 1000, make: (n) => body(() => {}, localsOf(n)) },
  {
    name: "locals that are set",
    count: 500,
    make: (n) =>
      body((w) => {
        for (let i = 0; i < n; i++) {
          w.raw(Uint8Array.of(0x41, 1, 0x21));
          w.u32(i);
        }
      }, localsOf(n)),
  },
  {
    name: "local declarations",
    count: 1000,
    make: (n) => {
      const pairs = Array.from({ length: n }, (_, i) => [1, 0x7f - (i & 3)]).flat();
      return body(() => {}, [...unsigned(n), ...pairs]);
    },
  },
  {
    name: "blocks in a row",
    count: 1000,
    make: (n) => body((w) => times(w, n, 0x02, 0x40, 0x41, 0, 0x0d, 0, END)),
  },
  {
    name: "nested blocks",
    count: 1000,
    make: (n) =>
      body((w) => {
        times(w, n, 0x02, 0x40, 0x41, 0, 0x0d, 0);
        times(w, n, END);
      }),
  },
  {
    name: "nested loops",
    count: 200,
    make: (n) =>
      body((w) => {
        times(w, n, 0x03, 0x40);
        times(w, n, 0x41, 0, 0x0d, 0, END);
      }),
  },
  {
    name: "loops in a row",
    count: 500,
    make: (n) => body((w) => times(w, n, 0x03, 0x40, 0x41, 0, 0x0d, 0, END)),
  },
  {
    name: "nested conditionals",
    count: 500,
    make: (n) =>
      moduleOf(
        vector(SECTION.type, 1, [0x60, 1, 0x7f, 0]),
        ...oneFunction((w) => {
          times(w, n, 0x20, 0, 0x04, 0x40);
          times(w, n, END);
        }),
      ),
  },
  {
    name: "targets of one branch table",
    count: 1000,
    make: (n) =>
      body((w) => {
        w.raw(Uint8Array.of(0x41, 0, 0x0e));
        entries(w, n, [0]);
        w.u8(0);
      }),
  },
  {
    name: "targets of one branch table, all different",
    count: 250,
    make: (n) =>
      moduleOf(
        vector(SECTION.type, 1, [0x60, 1, 0x7f, 0]),
        ...oneFunction((w) => {
          times(w, n, 0x02, 0x40);
          w.raw(Uint8Array.of(0x20, 0, 0x0e));
          entries(w, n, (out, i) => out.u32(i));
          w.u8(0);
          times(w, n, END);
        }),
      ),
  },
  {
    name: "values on the stack",
    count: 1000,
    make: (n) =>
      body((w) => {
        times(w, n, 0x41, 5);
        times(w, n, 0x1a);
      }),
  },
  {
    name: "arithmetic",
    count: 1000,
    make: (n) =>
      moduleOf(
        vector(SECTION.type, 1, [0x60, 2, 0x7f, 0x7f, 1, 0x7f]),
        ...oneFunction((w) => {
          w.raw(Uint8Array.of(0x20, 0));
          times(w, n, 0x20, 1, 0x6a, 0x20, 0, 0x6c);
        }),
      ),
  },
  {
    name: "stores and loads",
    count: 500,
    make: (n) => {
      const [declared, code] = oneFunction((w) => {
        for (let i = 0; i < n; i++) {
          w.raw(Uint8Array.of(0x41, 0, 0x41, 0, 0x28, 2));
          w.u32(i * 4 & 0xffff);
          w.raw(Uint8Array.of(0x36, 2));
          w.u32((i * 8 + 4) & 0xffff);
        }
      });
      return moduleOf(TYPE, declared, MEMORY, code);
    },
  },
  {
    name: "calls of one function",
    count: 500,
    make: (n) => body((w) => times(w, n, 0x10, 0)),
  },
  {
    name: "nested exception handlers",
    count: 200,
    make: (n) =>
      handlers((w) => {
        times(w, n, 0x02, 0x40, 0x1f, 0x40, 1, 2, 0);
        w.raw(Uint8Array.of(0x10, 0));
        times(w, n, END, END);
      }),
  },
  {
    name: "exception handlers in a row",
    count: 200,
    make: (n) => handlers((w) => times(w, n, 0x02, 0x40, 0x1f, 0x40, 1, 2, 0, 0x10, 0, END, END)),
  },
  {
    name: "clauses of one exception handler",
    count: 200,
    make: (n) =>
      handlers((w) => {
        w.raw(Uint8Array.of(0x1f, 0x40));
        entries(w, n, [0, 0, 0]);
        w.raw(Uint8Array.of(0x10, 0, END));
      }),
  },
  {
    name: "results of blocks",
    count: 500,
    make: (n) =>
      moduleOf(
        vector(SECTION.type, 1, [0x60, 1, 0x7f, 0]),
        ...oneFunction((w) => times(w, n, 0x20, 0, 0x04, 0x7f, 0x41, 1, 0x05, 0x41, 2, END, 0x21, 0)),
      ),
  },
];

/** A module of one function without parameters or results, and a tag of its type. */
function handlers(code: (writer: ByteWriter) => void): Uint8Array {
  const [declared, bodies] = oneFunction(code);
  return moduleOf(TYPE, declared, vector(SECTION.tag, 1, [0, 0]), bodies);
}

function unsigned(value: number): number[] {
  const writer = new ByteWriter();
  writer.u32(value);
  return [...writer.finish()];
}

/** One declaration of `n` locals of type i32. */
function localsOf(n: number): number[] {
  return [1, ...unsigned(n), 0x7f];
}
