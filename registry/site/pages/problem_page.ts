/**
 * Problems as pages: the problem of a request, and the page that each problem's `type` names.
 */
import { CACHE } from "../../answer.ts";
import { type Problem, type ProblemCode, PROBLEMS } from "../../problem.ts";
import type { Services } from "../../services.ts";
import { layout } from "../layout.ts";
import { markup } from "../markup.ts";

/** The answer for a browser. */
export function problemPage(services: Services, problem: Problem): Response {
  const [status, title] = PROBLEMS[problem.code];
  const text = layout(services, {
    title,
    description: title,
    hidden: true,
    body: markup`
      <main id="main" class="prose">
        <h1>${title}</h1>
        <p>${problem.message}.</p>
        <p><a href="/errors/${problem.code}">About this error</a></p>
      </main>
    `,
  });
  return new Response(text, {
    status,
    headers: { "content-type": "text/html; charset=utf-8", "cache-control": CACHE.never, ...problem.headers },
  });
}

/** The page of a code. */
export function errorPage(services: Services, code: string): string | undefined {
  if (!Object.hasOwn(PROBLEMS, code)) return undefined;
  const [status, title] = PROBLEMS[code as ProblemCode];
  return layout(services, {
    title,
    description: `The error ${code} of the registry.`,
    body: markup`
      <main id="main" class="prose">
        <h1>${title}</h1>
        <p>The registry answers with status ${status} and the code <code>${code}</code>. The answer's <code>detail</code> and <code>errors</code> say what was wrong in the case at hand; its <code>requestId</code> finds it in the registry's log.</p>
        <h2>All codes</h2>
        <ul>${
      Object.entries(PROBLEMS).map(([c, [s, t]]) =>
        markup`<li><a href="/errors/${c}"><code>${c}</code></a> ${s} ${t}</li>`
      )
    }</ul>
      </main>
    `,
  });
}
