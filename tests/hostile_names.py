"""Names that users may give to files, jobs and projects, and that no output may obey: one list for all outputs."""

from __future__ import annotations

HOSTILE: dict[str, str] = {
    "clear the screen": "a\x1b[2J\x1b[Hb",
    "set the title": "a\x1b]0;owned\x07b",
    "colour by one byte": "a\x9b31mb",
    "bell and backspace": "a\x07\x08\x08b",
    "carriage return": "innocent\rhidden",
    "new lines": "a\n# heading\n\niolens: all is well",
    "tabs": "a\tb",
    "zero byte": "a\x00b",
    "right to left": "a\u202egnp.exe\u2066b",
    "without width": "a\u200b\u200d\ufeffb",
    "line separator": "a\u2028b\u2029c",
    "a byte that is no text": "a\udcff\udc80b",
    "half a pair": "a\ud83db",
    "markup of pages": '</script><script>window.owned=1</script><img src=x onerror="window.owned=1">',
    "quotation marks": "\"'><b>b</b>&lt;&amp;",
    "tables and code": "a|b`c`*d*_e_~~f~~",
    "links": "[a](http://example.invalid/x) ![b](http://example.invalid/y.png) <http://example.invalid>",
    "a formula": "=cmd|' /C calc'!A0",
    "formulas of other kinds": "@SUM(1+1)*cmd|' /C calc'!A0",
    "mathematics": r"$\frac{1}{0}$ $$x$$ \(y\) \[z\]",
    "templates and formats": "{{ 7*7 }} {0} %s %n ${x}",
    "markup of terminals": "[bold red]b[/] [link=http://example.invalid]x[/link] :warning:",
    "paths": "../../etc/passwd\\..\\x",
    "signs of all kinds": "😀👨‍👩‍👧 ünïcode 漢字 עברית \U000e0041",
    "three thousand characters": "long" * 750,
}
SOURCES_OF_TROUBLE = tuple(HOSTILE.values())
