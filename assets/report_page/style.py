"""The style sheet of the page: two colour schemes, chosen by the reader's system."""

# ruff: noqa: E501 - a style sheet
STYLE = """
:root{--paper:#fbfaf8;--card:#fff;--ink:#23201c;--soft:#6d665d;--line:#e4dfd7;--bar:#4f43dd;
--track:#efebe4;--warn:#b4540a;--warn-paper:#fff4e6;--code:#f5f2ec}
@media (prefers-color-scheme:dark){:root{--paper:#171614;--card:#201e1b;--ink:#ece7df;--soft:#a39b90;
--line:#38342f;--bar:#9a92ff;--track:#2c2926;--warn:#ffb066;--warn-paper:#33261a;--code:#1b1917}}
*{box-sizing:border-box}
body{margin:0;overflow-wrap:anywhere;background:var(--paper);color:var(--ink);font:15px/1.55 system-ui,sans-serif}
main{max-width:1200px;margin:0 auto;padding:32px 24px 80px}
h1{font-size:28px;margin:0 0 4px}h2{font-size:20px;margin:44px 0 12px}h3{font-size:15px;margin:22px 0 8px}
p{margin:6px 0;max-width:75ch}.soft{color:var(--soft)}a{color:var(--bar)}
nav{margin:14px 0 0;display:flex;gap:16px;flex-wrap:wrap}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:22px 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 16px}
.tile b{display:block;font-size:24px;line-height:1.25;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:13px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px 18px;margin:12px 0}
.warn{background:var(--warn-paper);border-color:var(--warn)}.warn li::marker{color:var(--warn)}
ul{margin:6px 0;padding-left:22px}
.scroll{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:10px;margin:12px 0}
table{border-collapse:collapse;width:100%;font-size:13.5px}caption{text-align:left;padding:10px 14px 0;
color:var(--soft)}th,td{padding:6px 9px;border-bottom:1px solid var(--line);text-align:left;
white-space:nowrap;overflow-wrap:normal}tbody tr:last-child td{border-bottom:0}th{color:var(--soft);font-weight:600;
font-size:13px}.num{text-align:right;font-variant-numeric:tabular-nums}
.share{display:inline-block;width:90px;height:8px;border-radius:4px;background:var(--track);
margin-left:8px;vertical-align:middle;overflow:hidden}.share i{display:block;height:8px;
background:var(--bar);border-radius:4px}
svg{display:block;font:12px system-ui,sans-serif}
svg.chart{width:860px;max-width:100%;height:auto;min-width:640px}.plot,.card{overflow-x:auto}.wide{grid-column:1/-1}.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,430px),1fr));
gap:12px}.plots .card{margin:0}.bar{fill:var(--bar)}.track{fill:var(--track)}
svg .label{fill:var(--ink)}svg .value,svg .note{fill:var(--soft)}
.chart .label{text-anchor:end}.histogram .label,.histogram .value{text-anchor:middle}
.card h3{margin-top:0}td small{display:block;color:var(--soft);white-space:normal;max-width:44ch;font-size:12px}
details{background:var(--card);border:1px solid var(--line);border-radius:10px;margin:8px 0}
summary{cursor:pointer;padding:10px 16px;font-weight:600}summary span{font-weight:400;color:var(--soft)}
details>div{padding:0 16px 14px}
pre{background:var(--code);border:1px solid var(--line);border-radius:8px;padding:10px 12px;margin:6px 0
14px;white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.5 ui-monospace,monospace;max-height:320px;
overflow-y:auto;unicode-bidi:plaintext}
code{font:13px ui-monospace,monospace}.where{color:var(--soft);font-size:13px;margin-top:10px}
.chips code{display:inline-block;background:var(--code);border:1px solid var(--line);border-radius:6px;
padding:1px 7px;margin:3px 4px 3px 0;white-space:pre}.chips span{display:inline-block;margin-right:10px}.chips small{color:var(--soft)}
"""
