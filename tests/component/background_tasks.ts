/**
 * A program that pumps a store whose tasks are always ready: without arguments until it may end, and with `wait` while
 * a call of the host waits for 50,000 steps. Out: the number of steps.
 */
import process from "node:process";
import { Store } from "../../component/async/component_instance.ts";

const CALL_STEPS = 50_000;
const waits = process.argv[2] === "wait";
const call = { reject: () => {} };
let steps = 0;
const store = new Store(true, true, () => {
  if (++steps === CALL_STEPS && waits) {
    store.calls.delete(call);
    console.log(steps);
  }
  return true;
});
if (waits) store.calls.add(call);
store.pump();
store.pump();
if (!waits) console.log(steps);
