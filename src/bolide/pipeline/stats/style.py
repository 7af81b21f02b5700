"""How a page looks: light or dark as its reader's machine is, one column on a phone, and ink saved on paper."""

CSS = """\
:root {
  color-scheme: light dark;
  --paper: #fdfcf8; --ink: #22252a; --quiet: #6d6a62; --rule: #e5e1d6; --faint: #efece3;
  --a: #2b6a99; --b: #c2512f; --c: #a39d8e; --warn: #9a3412;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16181c; --ink: #e7e4dc; --quiet: #9c9a93; --rule: #31343a; --faint: #22252a;
    --a: #74b3de; --b: #f0906c; --c: #7d7a72; --warn: #f3a683;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 68rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  font-variant-numeric: tabular-nums;
}
h1, h2, h3 { font-weight: 600; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; letter-spacing: -0.015em; }
h2 { font-size: 1.3rem; letter-spacing: -0.01em; }
h3 { font-size: 0.95rem; margin-bottom: 0.35rem; }
a { color: inherit; text-decoration-color: var(--c); text-underline-offset: 0.2em; }
p { margin: 0.4rem 0; max-width: 60rem; }
.quiet, .note, caption { color: var(--quiet); }
header { margin-bottom: 1.75rem; }
header p { margin: 0.35rem 0 0; }
section { border-top: 1px solid var(--rule); padding-top: 1.5rem; margin-top: 2.5rem; }
.warn { border-left: 3px solid var(--b); padding-left: 0.75rem; }
.warn b { color: var(--warn); }
dl.facts {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 1rem 1.5rem; margin: 1rem 0 1.75rem;
}
dl.facts dt { color: var(--quiet); font-size: 0.8rem; }
dl.facts dd { margin: 0; font-size: 1.45rem; line-height: 1.3; letter-spacing: -0.01em; }
dl.facts dd small { display: block; font-size: 0.8rem; letter-spacing: 0; color: var(--quiet); line-height: 1.4; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1.75rem 2.5rem; }
.pair > * { min-width: 0; }
section > .pair { margin-top: 1.75rem; }
figure { margin: 0; padding-bottom: 1.6rem; }
section > figure { margin-top: 1.25rem; }
figcaption { font-size: 0.85rem; margin-bottom: 0.5rem; min-height: 1.4em; }
figcaption b { font-weight: 600; }
figcaption .note { display: block; font-size: 0.8rem; }
.key { margin-left: 0.75em; white-space: nowrap; }
.key::before {
  content: ""; display: inline-block; width: 1em; height: 0; margin-right: 0.35em; vertical-align: 0.28em;
  border-top: 2px solid var(--a);
}
.key.b::before { border-color: var(--b); }
.key.c::before { border-color: var(--c); }
.key.d::before { border-color: var(--ink); }
.key.mark::before { border-top: 1px dashed var(--quiet); }
.plot { position: relative; height: 11rem; margin-left: 3.4rem; }
.plot > svg { display: block; width: 100%; height: 100%; overflow: visible; }
.plot .y, .plot .x { color: var(--quiet); font-size: 0.72rem; line-height: 1; white-space: nowrap; }
.plot .y span { position: absolute; right: 100%; margin-right: 0.5rem; transform: translateY(50%); }
.plot .x span { position: absolute; top: 100%; margin-top: 0.45rem; transform: translateX(-50%); }
svg * { vector-effect: non-scaling-stroke; }
.grid { stroke: var(--faint); stroke-width: 1; }
.level { stroke: var(--quiet); stroke-width: 1; stroke-dasharray: 3 3; }
.mean { stroke: var(--ink); stroke-width: 1; }
.line { fill: none; stroke: var(--a); stroke-width: 1.6; stroke-linejoin: round; }
.dot { fill: none; stroke: var(--a); stroke-width: 5; stroke-linecap: round; }
.area { fill: var(--a); fill-opacity: 0.16; }
.fill { fill: var(--a); fill-opacity: 0.75; }
.b.line, .b.dot { stroke: var(--b); }
.b.fill { fill: var(--b); }
.c.line, .c.dot { stroke: var(--c); }
.d.line, .d.dot { stroke: var(--ink); }
.c.line { stroke-width: 1; }
.hit { fill: transparent; }
.hit:hover { fill: var(--ink); fill-opacity: 0.07; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.86rem; }
caption { text-align: left; font-size: 0.8rem; padding-bottom: 0.3rem; }
th, td {
  padding: 0.28rem 0.75rem 0.28rem 0; text-align: left; vertical-align: middle;
  border-bottom: 1px solid var(--faint);
}
th:last-child, td:last-child { padding-right: 0; }
th { font-weight: 500; color: var(--quiet); font-size: 0.78rem; border-bottom-color: var(--rule); }
tbody th { color: inherit; font-size: inherit; font-weight: 400; border-bottom-color: var(--faint); }
td.n, th.n { text-align: right; white-space: nowrap; }
td.n + td:not(.n), th.n + th:not(.n) { padding-left: 1rem; }
td.name, tbody th { overflow-wrap: anywhere; min-width: 6rem; }
td.bars { width: 34%; min-width: 5rem; }
td.went { width: 9rem; }
svg.bar { display: block; width: 100%; height: 0.62rem; background: var(--faint); }
svg.spark { display: block; width: 8rem; height: 1.5rem; }
details { margin-top: 1.25rem; }
summary { cursor: pointer; color: var(--quiet); font-size: 0.85rem; }
details .scroll { max-height: 26rem; overflow: auto; margin-top: 0.5rem; }
footer { margin-top: 3rem; color: var(--quiet); font-size: 0.8rem; }
@media (max-width: 34rem) {
  body { padding: 1.25rem 1rem 3rem; }
  h1 { font-size: 1.4rem; }
  dl.facts { grid-template-columns: 1fr 1fr; gap: 0.75rem 1rem; }
  dl.facts dd { font-size: 1.2rem; }
  .plot { height: 9rem; margin-left: 2.9rem; }
  table { font-size: 0.8rem; }
  th, td { padding-right: 0.5rem; }
  td.bars { width: 20%; min-width: 3rem; }
}
@media print {
  body { max-width: none; padding: 0; }
  figure, table { break-inside: avoid; }
}
"""
