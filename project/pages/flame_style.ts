/** The style of the page of `waft profile`. */

/** Style sheet, after that of page_style.ts. */
export const FLAME_STYLE = `
:root {
  --wasm: light-dark(#d9d0f7, #4a3f7a);
  --host: light-dark(#f8e2a5, #665012);
  --engine: light-dark(#f6cfb5, #6e3d1b);
}
body { padding: 10px 14px; }
header { display: flex; flex-wrap: wrap; gap: 4px 18px; align-items: baseline; margin-bottom: 10px; }
form { display: flex; flex-wrap: wrap; gap: 10px; align-items: end; margin: 8px 0; }
form label { display: flex; flex-direction: column; }
.key { display: inline-flex; gap: 12px; list-style: none; margin: 0; padding: 0; flex-wrap: wrap; }
.key span { display: inline-block; width: 1em; height: 1em; vertical-align: -2px; border: 1px solid var(--rule); }
#graph { position: relative; overflow-x: hidden; overflow-y: auto; max-height: 62vh; border: 1px solid var(--rule); }
#rows { position: relative; }
.frame { position: absolute; height: 21px; overflow: hidden; white-space: nowrap; font: 12px/20px var(--code);
  padding: 0 3px; border: 1px solid var(--ground); cursor: pointer; color: var(--text); }
.wasm { background: var(--wasm); } .host { background: var(--host); } .engine { background: var(--engine); }
.frame.found { outline: 2px solid var(--accent); outline-offset: -2px; }
.frame.around { opacity: 0.75; }
#status { min-height: 1.5em; margin: 6px 0 14px; font-family: var(--code); font-size: 13px; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; width: 100%; }
th, td { text-align: left; padding: 3px 10px 3px 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.name { font-family: var(--code); overflow-wrap: anywhere; min-width: 12rem; }
`;
