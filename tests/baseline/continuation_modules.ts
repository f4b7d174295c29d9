/**
 * Random modules about the rules of stack switching: a function with one instruction, whose operands, handlers and
 * results fit or nearly fit. In: a seed. Out: the text of a module whose declarations are valid; its body may not be.
 */
import { Random } from "../fuzz/random.ts";

/** Numbers of function types, each with a type of continuations, and of tags. */
const TYPES = 6;
const TAGS = 5;

interface Signature {
  readonly params: readonly string[];
  readonly results: readonly string[];
}

/** Types of values; those at the end refer to the continuations of the first types. */
const VALUES = [
  "i32",
  "i64",
  "v128",
  "exnref",
  "contref",
  "nullcontref",
  "(ref cont)",
  "(ref null $k0)",
  "(ref $k1)",
  "(ref null $f0)",
];

/** Types of which most match some other. */
const RELATED = ["i32", "contref", "nullcontref", "(ref cont)", "(ref null $k0)", "(ref $k1)"];

class Writer {
  readonly #random: Random;
  readonly #types: Signature[] = [];
  readonly #tags: Signature[];

  constructor(seed: number) {
    const random = this.#random = new Random(seed * 31 + 7);
    for (let k = 0; k < TYPES; k++) {
      // The second type is a subtype of the first, and some others are equal to earlier ones but for their place.
      const same = k === 1 || (k > 1 && random.chance(30)) ? this.#types[k - 1] : undefined;
      const params = random.chance(50) ? this.#list(1, RELATED) : this.#list(3);
      this.#types.push(same ?? { params, results: this.#list(1, RELATED) });
    }
    // One may receive its sender, for switches.
    this.#types[3] = { ...this.#types[3], params: [...this.#types[3].params, this.#contRef()] };
    this.#tags = Array.from(
      { length: TAGS },
      (_, k): Signature =>
        k === 0
          ? { params: [], results: this.#types[3].results }
          : { params: this.#list(2, RELATED), results: random.chance(40) ? [] : this.#list(1, RELATED) },
    );
  }

  text(): string {
    const types = this.#types.map((type, k) => {
      const sub = k === 0 ? "sub" : k === 1 ? "sub $f0" : "sub final";
      const subCont = sub.replace("$f0", "$k0");
      return `(type $f${k} (${sub} (func ${write(type)}))) (type $k${k} (${subCont} (cont $f${k})))`;
    });
    const tags = this.#tags.map((type, k) => `(tag $t${k} ${write(type)})`);
    return `(module (rec ${types.join("\n")})\n${tags.join(" ")}\n${this.#function()})`;
  }

  #list(most: number, types: readonly string[] = VALUES): string[] {
    return Array.from({ length: this.#random.below(most + 1) }, () => this.#random.pick(types));
  }

  #contRef(): string {
    return `(ref ${this.#random.chance(50) ? "null " : ""}$k${this.#random.below(TYPES)})`;
  }

  /** The list, with one entry changed, added or left out in one of ten cases. */
  #nearly(list: readonly string[]): readonly string[] {
    const random = this.#random;
    if (random.chance(90)) return list;
    const at = random.below(list.length + 1);
    const replaced = random.chance(50) ? [random.pick(VALUES)] : [];
    return [...list.slice(0, at), ...replaced, ...list.slice(at + random.below(2))];
  }

  /** An index of a type of continuations, seldom that of a function type. */
  #contIndex(): number {
    return this.#random.below(TYPES);
  }

  #name(k: number): string {
    return this.#random.chance(97) ? `$k${k}` : `$f${k}`;
  }

  #function(): string {
    const random = this.#random;
    const labels = [0, 1].map(() => this.#labelTypes());
    const [instruction, operands, results] = this.#instruction(labels[1]);
    // Null is a continuation of any type.
    const isNull = (type: string) => type.startsWith("(ref null $k") && random.chance(10);
    const params = this.#nearly(operands).map((type) => isNull(type) ? "nullcontref" : type);
    const given = random.chance(10) ? "(unreachable)" : params.map((_, k) => `(local.get ${k})`).join(" ");
    return `(func (param ${params.join(" ")})
      (block $outer (result ${labels[0].join(" ")})
        (block $inner (result ${labels[1].join(" ")})
          (block (result ${this.#nearly(results).join(" ")}) ${given} ${instruction}) (unreachable))
        (unreachable))
      (unreachable))`;
  }

  /** What a handler of some tag may pass. */
  #labelTypes(): readonly string[] {
    const tag = this.#tags[this.#random.below(TAGS)];
    const fitting = this.#types.findIndex(({ params }) => params.join() === tag.results.join());
    const last = fitting < 0 || this.#random.chance(40) ? this.#contRef() : `(ref null $k${fitting})`;
    const payload = tag.params.map((type) => this.#random.chance(30) ? this.#random.pick(RELATED) : type);
    return this.#nearly([...payload, last]);
  }

  /** Handlers of a computation that returns `results`; the labels of most have the types that they pass. */
  #handlers(): string {
    const random = this.#random;
    const one = () => {
      const tag = random.below(TAGS);
      return random.chance(25) ? `(on $t${tag} switch)` : `(on $t${tag} ${random.pick(["$outer", "$inner"])})`;
    };
    return Array.from({ length: random.below(3) }, one).join(" ");
  }

  /** An instruction, its operands and its results. `inner`: the types of the label $inner. */
  #instruction(
    inner: readonly string[],
  ): readonly [text: string, operands: readonly string[], results: readonly string[]] {
    const random = this.#random;
    const k = this.#contIndex();
    const { params, results } = this.#types[k];
    const reference = `(ref null $k${k})`;
    const tag = random.below(TAGS);
    switch (random.below(11)) {
      case 0:
        return [`cont.new ${this.#name(k)}`, [`(ref null $f${k})`], [`(ref $k${k})`]];
      case 1: {
        const bound = random.below(params.length + 1);
        const rest = params.slice(bound).join();
        const found = this.#types.findIndex((type) => type.params.join() === rest && type.results === results);
        const to = found < 0 || random.chance(20) ? this.#contIndex() : found;
        const operands = params.slice(0, Math.max(0, params.length - this.#types[to].params.length));
        return [`cont.bind ${this.#name(k)} $k${to}`, [...operands, reference], [`(ref $k${to})`]];
      }
      case 2:
        return [`suspend $t${tag}`, this.#tags[tag].params, this.#tags[tag].results];
      case 3:
      case 4:
        return [`resume ${this.#name(k)} ${this.#handlers()}`, [...params, reference], results];
      case 5:
        return [
          `resume_throw ${this.#name(k)} $t${tag} ${this.#handlers()}`,
          [...this.#tags[tag].params, reference],
          results,
        ];
      case 6:
        return [`resume_throw_ref ${this.#name(k)} ${this.#handlers()}`, ["exnref", reference], results];
      case 7: {
        const target = random.chance(80) ? 3 : k;
        const type = this.#types[target];
        const own = Number(/\$k(\d)/.exec(type.params.at(-1) ?? "")?.[1] ?? 0);
        return [
          `switch $k${target} $t${random.chance(80) ? 0 : tag}`,
          [...type.params.slice(0, -1), `(ref null $k${target})`],
          this.#types[own].params,
        ];
      }
      case 8:
        return [`throw $t${tag}`, this.#tags[tag].params, []];
      case 9: {
        const last = inner.at(-1) ?? reference;
        const to = last.startsWith("(ref") ? last : reference;
        const from = random.pick(["contref", to]);
        const below = inner.slice(0, -1);
        const name = random.pick(["br_on_cast", "br_on_cast_fail"]);
        return [`${name} $inner ${from} ${to}`, [...below, from], [...below, name === "br_on_cast" ? from : to]];
      }
      default: {
        const type = random.pick(["contref", "nullcontref", "(ref cont)", "(ref nocont)", reference, `(ref $k${k})`]);
        const other = random.pick(["ref.is_null", "ref.as_non_null", `ref.test ${type}`, `ref.cast ${type}`]);
        return [other, [random.pick([type, this.#contRef()])], other === "ref.is_null" ? ["i32"] : [type]];
      }
    }
  }
}

function write({ params, results }: Signature): string {
  return `(param ${params.join(" ")}) (result ${results.join(" ")})`;
}

/** The text of the module of `seed`. */
export function continuationModule(seed: number): string {
  return new Writer(seed).text();
}
