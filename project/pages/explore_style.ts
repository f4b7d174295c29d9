/** The style of the page of `waft explore`. */

/** Style sheet, after that of page_style.ts. */
export const EXPLORE_STYLE = `
body { display: grid; grid-template: auto 1fr auto / minmax(200px, 20rem) 1fr; height: 100vh; height: 100dvh; }
header { grid-column: 1 / 3; display: flex; flex-wrap: wrap; gap: 4px 16px; padding: 8px 12px; align-items: baseline;
  background: var(--panel); border-bottom: 1px solid var(--rule); }
nav { display: flex; flex-direction: column; gap: 6px; padding: 8px; min-height: 0; border-right: 1px solid var(--rule); }
nav label { display: flex; flex-direction: column; }
nav ul { list-style: none; margin: 0; padding: 0; overflow: auto; flex: 1; min-height: 80px; }
nav li a { display: flex; gap: 8px; justify-content: space-between; min-height: 26px; padding: 2px 6px; color: inherit;
  text-decoration: none; border-radius: 4px; font: 13px/1.5 var(--code); }
nav li a span:first-child { overflow-wrap: anywhere; }
nav li a[aria-current] { background: var(--active); }
nav li a:hover { text-decoration: underline; }
nav li.absent a { color: var(--quiet); }
main { display: flex; flex-direction: column; min-width: 0; min-height: 0; padding: 8px 12px 0; gap: 6px; }
#panes { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 8px; flex: 1; min-height: 0; }
section { display: flex; flex-direction: column; min-height: 0; min-width: 0; gap: 4px; }
.lines { flex: 1; overflow: auto; border: 1px solid var(--rule); border-radius: 4px; font: 12.5px/1.5 var(--code);
  white-space: pre; }
.lines [role=presentation] { content-visibility: auto; contain-intrinsic-size: auto 100000px; width: max-content;
  min-width: 100%; }
.line { padding: 0 8px 0 5px; border-left: 3px solid transparent; min-height: 1.5em; cursor: default; }
.line.linked { background: var(--linked); border-left-color: #b98900; }
.line[aria-selected=true] { background: var(--active); border-left-color: var(--accent); }
.line .note { color: var(--quiet); }
footer { grid-column: 1 / 3; padding: 6px 12px; border-top: 1px solid var(--rule); background: var(--panel);
  display: flex; gap: 4px 16px; justify-content: space-between; flex-wrap: wrap; font-size: 13px; }
#status { font-family: var(--code); overflow-wrap: anywhere; }
dialog { max-width: 34rem; color: inherit; background: var(--ground); border: 1px solid var(--rule); border-radius: 6px; }
dialog dl { display: grid; grid-template-columns: auto 1fr; gap: 6px 14px; }
dialog dd { margin: 0; }
@media (max-width: 800px) {
  body { display: block; height: auto; }
  nav { border-right: 0; border-bottom: 1px solid var(--rule); }
  nav ul { max-height: 30vh; }
  #panes { display: flex; flex-direction: column; }
  .lines { height: 55vh; flex: none; }
  footer { position: sticky; bottom: 0; }
}
`;
