/**
 * For limit_test.ts: a realm whose namespace has interruptible code with fuel. Each message is the name of a case; the
 * answer is its outcome.
 */
import { configure, limit, WebAssembly, type WorkLimits } from "@waft/engine/webassembly";
import { serve } from "../support/test_worker.ts";
import { wasm } from "./subject.ts";

configure({ interruptible: true, fuel: true });

const later = (milliseconds = 1) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

interface Exports {
  memory: WebAssembly.Memory;
  spin(): void;
  seven(): number;
  host(): void;
  host_then_spin(): void;
  count(until: number): number;
  waits(): number;
}

const module = new WebAssembly.Module(wasm(`(module
  (import "" "host" (func $host))
  (import "" "later" (func $later))
  (memory (export "memory") 1)
  (func (export "spin") (loop
    (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
    (br 0)))
  (func (export "seven") (result i32) (i32.const 7))
  (func (export "host") (call $host))
  (func (export "host_then_spin") (call $host) (loop (br 0)))
  (func (export "count") (param $until i32) (result i32) (local $n i32)
    (loop $again
      (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (local.get $until))))
    (local.get $n))
  (func (export "waits") (result i32) (call $later) (loop (br 0)) (i32.const 1)))`));

type JspiNamespace = typeof WebAssembly & {
  Suspending: new (f: () => unknown) => WebAssembly.ImportValue;
  promising(f: unknown): (...args: number[]) => Promise<unknown>;
};
const { Suspending, promising } = WebAssembly as JspiNamespace;

/** A new instance; its host function runs `host`. */
function instance(host: () => void = () => {}): Exports {
  const imports = { "": { host, later: new Suspending(() => later(5)) } };
  return new WebAssembly.Instance(module, imports).exports as unknown as Exports;
}

const short: WorkLimits = { deadline: 40 };

const CASES: Readonly<Record<string, () => unknown>> = {
  synchronous: () => limit(short, () => instance().spin()),
  result: () => limit({ deadline: 60_000 }, () => instance().seven()),
  promised: () => limit({ deadline: 60_000 }, () => Promise.resolve(instance().seven())),
  processor: () => limit({ processorTime: 40 }, () => instance().spin()),
  fuel: () => limit({ fuel: 1000 }, () => instance().spin()),
  inner: () => limit({ deadline: 60_000 }, () => limit(short, () => instance().spin())),
  outer: () => limit(short, () => limit({ deadline: 60_000 }, () => instance().spin())),
  // In a host function, below guest code.
  below: () => limit({ deadline: 60_000 }, () => instance(() => limit(short, () => instance().spin())).host()),
  turns: () =>
    limit(short, async () => {
      await later();
      instance().spin();
    }),
  // A host function begins and ends other work below guest code in a later turn, which keeps its deadline.
  belowLater: () =>
    limit(short, async () => {
      await later();
      instance(() => limit({ deadline: 60_000 }, () => {})).host_then_spin();
    }),
  // The program catches the error: none of its later calls runs code.
  caught: async () => {
    const x = instance();
    const caught: unknown[] = [];
    await limit(short, async () => {
      for (let k = 0; k < 3; k++) {
        await later();
        try {
          k === 0 ? x.spin() : x.seven();
        } catch (error) {
          caught.push((error as { code: string }).code);
        }
      }
    }).catch(() => {});
    while (caught.length < 3) await later();
    return [...caught, x.seven()].join();
  },
  waiting: () => limit(short, () => new Promise(() => {})),
  suspended: () => limit(short, () => promising(instance().waits)()),
  suspendedLater: () =>
    limit(short, async () => {
      await later();
      return promising(instance().waits)();
    }),
  promisingSpins: () => limit(short, () => promising(instance().spin)()),
  // A promising call runs up to its first suspension: the program goes on with synchronous calls.
  promisingRuns: async () => {
    const x = instance();
    const counted = promising(x.count)(100_000_000);
    return [x.seven(), await counted].join();
  },
  // Two works at a time: each has its own deadline, and other code has none.
  two: async () => {
    const x = instance();
    const long = limit({ deadline: 60_000 }, async () => {
      for (let k = 0; k < 80; k++) {
        await later();
        x.seven();
      }
      return "long";
    });
    const failed = limit(short, async () => {
      await later();
      x.spin();
    }).catch((error) => error.message);
    const free = later(60).then(() => x.seven());
    return (await Promise.all([long, failed, free])).join();
  },
  signal: () => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error("enough")), 10);
    return limit({ signal: controller.signal }, () => new Promise(() => {}));
  },
  signalled: () => limit({ signal: AbortSignal.abort(new Error("before")) }, () => instance().seven()),
  state: () => {
    const x = instance();
    try {
      limit(short, () => x.spin());
    } catch { /* as after a trap: the memory has what was stored */ }
    return new Int32Array(x.memory.buffer)[0] > 0 && x.seven();
  },
  error: () =>
    limit(short, () => {
      throw new Error("own");
    }),
  promise: () => limit({ fuel: 10_000 }, () => Promise.resolve(1)),
  unknown: () => limit({ deadlin: 5 } as WorkLimits, () => 1),
  wrong: () => limit({ deadline: "5" as unknown as number }, () => 1),
  action: () => limit(short, 5 as unknown as () => void),
};

serve(async (name: string) => {
  try {
    return String(await CASES[name]());
  } catch (error) {
    const { code } = error as { code?: string };
    return `${error}${code === undefined ? "" : `, ${code}`}`;
  }
});
