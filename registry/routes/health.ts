/**
 * `/healthz`: the process runs. `/readyz`: it can serve, which needs the database.
 */
import { textAnswer } from "../answer.ts";
import type { Call } from "../services.ts";
import { StoreUnavailable } from "../store/database.ts";

/** `GET /healthz` */
export function getHealth(call: Call): Response {
  return textAnswer(call.request, "ok\n", { type: "text/plain; charset=utf-8", cache: "never" });
}

/** `GET /readyz` */
export async function getReady(call: Call): Promise<Response> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StoreUnavailable("The database does not answer")), 2000);
  });
  try {
    await Promise.race([call.services.database.all("SELECT number FROM migrations LIMIT 1"), late]);
  } finally {
    clearTimeout(timer);
  }
  return textAnswer(call.request, "ready\n", { type: "text/plain; charset=utf-8", cache: "never" });
}
