/** A thread of pthread_program.ts as a Worker of the web. */
import { type Port, startThread } from "./pthread_worker.ts";

const scope = globalThis as unknown as Port & { onmessage: ((event: MessageEvent) => void) | null };
startThread(scope, (listener) => {
  scope.onmessage = (event) => listener(event.data);
});
