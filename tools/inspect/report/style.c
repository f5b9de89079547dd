/*
 * style.c - the style sheet of the report
 *
 * The series use the colours of Okabe and Ito (Color Universal Design, 2008), with brighter variants in dark mode.  The
 * heat map goes from light to dark in one hue; dark mode reverses it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/report/style.h"

#include <stddef.h>

/* Several strings, because C guarantees only 4095 characters per literal. */
const char *const report_style[] = {
    ":root{color-scheme:light dark;--paper:#fff;--ink:#16191d;--dim:#565d68;--line:#cfd4da;--soft:#f3f5f7;"
    "--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#a5528a;--c4:#8a6d00;--c5:#444;"
    "--good:#00714f;--look:#8a5a00;--fault:#b3261e;--p0:#9ecae8;--p1:#f3c68f;--p2:#c9ced4;--pi:#16191d;"
    "--h0:#f4f7fb;--h1:#e6eef7;--h2:#d6e4f1;--h3:#c3d7ea;--h4:#acc8e1;--h5:#92b6d6;--h6:#77a2c9;--h7:#5d8ebc;"
    "--h8:#4579ad;--h9:#30659c;--h10:#1e5187;--h11:#0d3b6b;--hl:#16191d;--hd:#fff}\n",
    "@media (prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e8eaed;--dim:#a3abb5;--line:#3a4048;"
    "--soft:#1e2327;--c0:#56b4e9;--c1:#e69f00;--c2:#2fcf9f;--c3:#e39ac9;--c4:#f0e442;--c5:#ccc;"
    "--good:#4cd0a0;--look:#f0b85a;--fault:#ff8a80;--p0:#24587a;--p1:#7a4e16;--p2:#4a5058;--pi:#fff;"
    "--h0:#1e252d;--h1:#1f2d3b;--h2:#203648;--h3:#214056;--h4:#234a65;--h5:#24506d;--h6:#275a79;--h7:#2c6586;"
    "--h8:#4f8bb0;--h9:#6ba3c6;--h10:#8dbcda;--h11:#b5d6ec;--hl:#e8eaed;--hd:#10161c}}\n",
    "@media print{:root{--paper:#fff;--ink:#000;--dim:#444;--line:#bbb;--soft:#f3f5f7;--c0:#0072b2;--c1:#d55e00;"
    "--c2:#009e73;--c3:#a5528a;--c4:#8a6d00;--c5:#444;--good:#00714f;--look:#8a5a00;--fault:#b3261e;--p0:#9ecae8;"
    "--p1:#f3c68f;--p2:#c9ced4;--pi:#16191d;--h0:#f4f7fb;--h1:#e6eef7;--h2:#d6e4f1;--h3:#c3d7ea;--h4:#acc8e1;"
    "--h5:#92b6d6;--h6:#77a2c9;--h7:#5d8ebc;--h8:#4579ad;--h9:#30659c;--h10:#1e5187;--h11:#0d3b6b;--hl:#16191d;"
    "--hd:#fff}body{print-color-adjust:exact;-webkit-print-color-adjust:exact}nav{display:none}"
    "figure,tr,.tile{break-inside:avoid}h2{break-after:avoid}section{padding-top:8px}}\n",
    /* Show one of the two drawings of a plot.  Fold sections and enlarge pictures only on a screen. */
    "svg.slim{display:none}@media screen and (max-width:760px){svg.broad{display:none}svg.slim{display:block}"
    ".scroll svg.slim{max-width:none}}.scroll{overflow-x:auto}"
    ".fold{position:relative;margin:8px 0}.fold>input,.zoom input{position:absolute;opacity:0;left:0;top:0;margin:0}"
    ".fold>label{cursor:pointer;color:var(--c0)}.fold>label::before{content:'\\25b8\\a0'}"
    ".fold>input:checked+label::before{content:'\\25be\\a0'}.fold>input:focus-visible+label{outline:2px solid}"
    "@media screen{.fold>input:not(:checked)~.folded{display:none}}@media print{.fold>label::before{content:none}}"
    ".zoom{display:block;position:relative;cursor:zoom-in}.zoom input:focus-visible+img{outline:3px solid var(--c0)}"
    "@media screen{.zoom input:checked+img{position:fixed;z-index:9;left:0;top:0;width:100vw;height:100vh;"
    "max-width:none;object-fit:contain;background:#000;padding:2vmin;cursor:zoom-out}}"
    ".equal .first>*{border-top:2px solid var(--line)}",
    "*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif}"
    "main{max-width:1020px;margin:0 auto;padding:24px 20px 60px}"
    "h1{font-size:26px;line-height:1.25;margin:0 0 4px}h2{font-size:19px;margin:0 0 10px;padding-top:8px;"
    "border-top:2px solid var(--ink)}h3{font-size:15px;margin:22px 0 6px}p{margin:6px 0 10px;max-width:78ch}"
    "section{padding-top:30px}.dim,figcaption{color:var(--dim)}code{font:13px/1.4 ui-monospace,'DejaVu Sans Mono',"
    "monospace;overflow-wrap:anywhere}pre{background:var(--soft);padding:10px 12px;margin:8px 0;white-space:pre-wrap;"
    "overflow-wrap:anywhere;font:13px/1.5 ui-monospace,'DejaVu Sans "
    "Mono',monospace}a{color:var(--c0)}.w{white-space:nowrap}",
    "nav{margin:14px 0 0;display:flex;flex-wrap:wrap;gap:4px 16px}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:14px}"
    "th,td{padding:3px 14px 3px 0;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}"
    "th:first-child,td.t,th.t{text-align:left}tbody th,.card th{font-weight:400}thead th{font-weight:600}"
    ".card th,.card td{text-align:left}.card th{color:var(--dim);white-space:nowrap}.card td{width:100%}"
    ".wide{overflow-x:auto}figure{margin:16px 0 0}figcaption{font-size:13.5px;max-width:92ch;margin-top:4px}"
    ".pair{display:flex;flex-wrap:wrap;gap:0 20px}.pair figure{flex:1 1 340px;max-width:420px;min-width:0}"
    "@media (max-width:700px){.pair figure{flex-basis:100%}.card th,.checks th{white-space:normal}"
    ".checks tr{display:block;padding:5px 0;border-bottom:1px solid var(--line)}.checks td,.checks th{display:inline;"
    "border:0}.checks td,.card td{overflow-wrap:anywhere}th,td{padding-right:9px}main{padding:14px 12px 40px}}",
    ".tiles{display:flex;flex-wrap:wrap;gap:14px 12px;margin-top:10px}.tile{margin:0}.tiles .tile{width:150px}"
    ".means .tile{width:auto}.tile img{display:block;max-width:100%;height:auto;background:#000}"
    ".tile figcaption{font-size:12px;line-height:1.35;overflow-wrap:anywhere;color:var(--ink)}"
    ".checks td,.checks th{text-align:left;white-space:normal}.checks th{white-space:nowrap;font-weight:600}"
    ".checks td:last-child{width:100%}.checks .lv{white-space:nowrap;font-weight:600}.good{color:var(--good)}"
    ".look,.synthetic{color:var(--look)}.synthetic{font-weight:600}.fault{color:var(--fault)}.sum{display:flex;gap:8px "
    "26px;flex-wrap:wrap;margin:12px 0}"
    ".sum b{font-size:22px;display:block;line-height:1.2}",
    "svg{max-width:100%;height:auto;display:block;overflow:visible}svg text{font-size:12.5px;fill:var(--ink);"
    "font-variant-numeric:tabular-nums}svg .d{fill:var(--dim)}svg .m{text-anchor:middle}svg .e{text-anchor:end}"
    "svg .b{font-weight:600}svg "
    ".slim .n{font-size:11.5px}.g{stroke:var(--line);stroke-width:1}.a{stroke:var(--ink);stroke-width:1}"
    ".band{fill:var(--soft)}",
    ".s0,.s1,.s2,.s3,.s4,.s5{fill:none;stroke-width:2;stroke-linejoin:round}.s0,.i0{stroke:var(--c0)}"
    ".s1,.i1{stroke:var(--c1)}.s2,.i2{stroke:var(--c2)}.s3,.i3{stroke:var(--c3)}.s4,.i4{stroke:var(--c4)}"
    ".s5,.i5{stroke:var(--c5)}.s1{stroke-dasharray:7 3}.s2{stroke-dasharray:2 2.5}.s3{stroke-dasharray:9 3 2 3}"
    ".s4{stroke-dasharray:4 4}.s5{stroke-dasharray:1 3}.i0,.i1,.i2,.i3,.i4,.i5{stroke-width:2.4}"
    ".f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)}"
    ".f5{fill:var(--c5)}.p0{fill:var(--p0)}.p1{fill:var(--p1)}.p2{fill:var(--p2)}"
    "svg .on0,svg .on1,svg .on2{fill:var(--pi)}",
    ".h0{fill:var(--h0)}.h1{fill:var(--h1)}.h2{fill:var(--h2)}.h3{fill:var(--h3)}.h4{fill:var(--h4)}"
    ".h5{fill:var(--h5)}.h6{fill:var(--h6)}.h7{fill:var(--h7)}.h8{fill:var(--h8)}.h9{fill:var(--h9)}"
    ".h10{fill:var(--h10)}.h11{fill:var(--h11)}svg .hl{fill:var(--hl)}svg .hd{fill:var(--hd)}"
    ".fine{fill:var(--p0)}.some{fill:var(--p2)}.bad{fill:var(--fault)}\n",
    NULL,
};
