import assert from 'node:assert/strict';
import { TerminalFilter } from '../../../src/client/terminal-filter.ts';

const ESC = '\u001b';
const passed = (text: string): string => new TerminalFilter().pass(text);

describe('the output of the sessions of others on a terminal', () => {
  const harmless: readonly [what: string, text: string][] = [
    ['text of any script', 'héllo wörld 漢字 🙂'],
    ['line ends, tabs, and backspaces', 'a\r\n\tb\b\u0007'],
    ['colors', `${ESC}[1;31mred${ESC}[38:2:1:2:3mx${ESC}[m`],
    ['movements of the cursor', `${ESC}[2A${ESC}[10;20H${ESC}[5G${ESC}7${ESC}8${ESC}M${ESC}[s${ESC}[u`],
    ['erasing and inserting', `${ESC}[2J${ESC}[K${ESC}[1J${ESC}[3L${ESC}[2P${ESC}[4@${ESC}[?J`],
    ['insert mode', `${ESC}[4h${ESC}[4l`],
    ['regions of scrolling', `${ESC}[2;20r${ESC}[3S`],
    ['the alternate screen and the cursor', `${ESC}[?1049h${ESC}[?25l${ESC}[?7l`],
    ['the shape of the cursor', `${ESC}[2 q`],
    ['line drawing', `${ESC}(0lqk${ESC}(B\u000e\u000f`],
  ];
  for (const [what, text] of harmless) it(`keeps ${what}`, () => assert.equal(passed(text), text));

  const hostile: readonly [what: string, text: string, left?: string][] = [
    ['the clipboard', `${ESC}]52;c;ZXZpbA==\u0007`],
    ['the clipboard, ended by ST', `${ESC}]52;c;ZXZpbA==${ESC}\\`],
    ['the clipboard, in 8 bits', '\u009d52;c;ZXZpbA==\u009c'],
    ['titles', `${ESC}]0;evil\u0007${ESC}]2;evil${ESC}\\${ESC}kevil${ESC}\\`],
    ['links', `${ESC}]8;;http://evil\u0007click${ESC}]8;;\u0007`, 'click'],
    ['requests for colors', `${ESC}]10;?\u0007${ESC}]4;1;?\u0007`],
    ['device attributes', `${ESC}[c${ESC}[0c${ESC}[>c${ESC}[=c${ESC}Z`],
    ['device status and positions', `${ESC}[5n${ESC}[6n${ESC}[?6n`],
    ['requests for settings (DECRQSS)', `${ESC}P$q"p${ESC}\\`],
    ['requests for modes (DECRQM)', `${ESC}[?25$p${ESC}[4$p`],
    ['requests for parameters and versions', `${ESC}[x${ESC}[1x${ESC}[>q${ESC}[>0q${ESC}[?u`],
    ['reports and changes of the window', `${ESC}[21t${ESC}[20t${ESC}[8;1;1t${ESC}[22;0t`],
    ['ENQ, which a terminal answers', '\u0005'],
    ['DCS, such as images and keys', `${ESC}Pq#0;2;0;0;0${ESC}\\${ESC}P1;1|17/6c73${ESC}\\`],
    ['DCS in 8 bits', '\u0090$q"p\u009c'],
    ['APC, PM, and SOS', `${ESC}_Gx${ESC}\\${ESC}^x${ESC}\\${ESC}Xx${ESC}\\\u009fx\u009c\u009ex\u009c\u0098x\u009c`],
    ['reports of a mouse, of focus, and of pasting', `${ESC}[?1000h${ESC}[?1003;1006h${ESC}[?1004h${ESC}[?2004h`],
    ['modes that lock the keyboard, echo, or change Enter', `${ESC}[2h${ESC}[12l${ESC}[20h${ESC}[4;2h`],
    ['modes of the keyboard', `${ESC}[?1h${ESC}=${ESC}>${ESC}[>4;1m${ESC}[>1u`],
    ['a printer', `${ESC}[i${ESC}[5i${ESC}[?5i`],
    ['lines above the screen', `${ESC}[3J`],
    ['other character sets and answers in 8 bits', `${ESC}%@${ESC}(1${ESC} G`],
    ['C1 characters', '\u0080\u0091\u009a'],
    ['CSI in 8 bits that asks', '\u009b6n'],
    ['DEL and NUL', '\u007f\u0000'],
    ['a harmful mode beside a harmless one', `${ESC}[?25;1000h`, `${ESC}[?25h`],
    ['a sequence with many parameters', `${ESC}[${'1;'.repeat(100)}m`],
    ['a control character within a request', `${ESC}[6\nn`, '\n'],
    ['a request within a string that another ends', `${ESC}]0;x${ESC}[6n`],
    ['a request after an escape that was given up', `${ESC}${ESC}[6n`],
    ['a string that CAN ends', `${ESC}]0;x\u0018shown`, 'shown'],
  ];
  for (const [what, text, left = ''] of hostile) {
    it(`drops ${what}`, () => assert.equal(passed(text), left));
    it(`drops ${what}, in parts of one character`, () => {
      const filter = new TerminalFilter();
      assert.equal([...text].map((character) => filter.pass(character)).join(''), left);
    });
  }

  it('reads CSI in 8 bits as in 7', () => assert.equal(passed('\u009b31mred'), `${ESC}[31mred`));

  it('resets the terminal without erasing the lines above the screen', () =>
    assert.equal(passed(`${ESC}c`), `${ESC}[!p${ESC}[H${ESC}[2J`));

  it('cannot be hidden behind a string without an end', () => {
    const text = passed(`${ESC}]0;${'x'.repeat(5000)}rm -rf /`);
    assert.match(text, /rm -rf \/$/);
  });

  it('leaves the terminal as it was', () => {
    const filter = new TerminalFilter();
    assert.doesNotMatch(filter.end(), /1049/);
    filter.pass(`${ESC}[?1049h${ESC}[?25l${ESC}]0;unfinished`);
    assert.match(filter.end(), /\[\?1049l.*\[m.*25h/s);
    assert.equal(filter.pass('text'), 'text');
  });

  it('never passes what makes a terminal answer, whatever random text it gets', () => {
    let seed = 1;
    const random = (below: number): number => {
      seed = (seed * 1103515245 + 12345) % 2 ** 31;
      return seed % below;
    };
    const pieces = [...`${ESC}[]P?>;$ 6nctqh`, '1000', '52', '\u0007', '\u009b', '\\', 'x'];
    for (let round = 0; round < 5000; round++) {
      const text = Array.from({ length: 12 }, () => pieces[random(pieces.length)] ?? '').join('');
      const out = passed(text).replaceAll(ESC, '<ESC>');
      assert.doesNotMatch(
        out,
        /<ESC>\[[?>=]?[\d;]*\$?[ncxti]|<ESC>\[[?>=][\d;]*u|<ESC>[\]P_^XZ]|\[\?[\d;]*1000/u,
        JSON.stringify(text),
      );
      assert.ok(!/\p{Cc}/u.test(out.replaceAll('\u0007', '')), JSON.stringify(text));
    }
  });
});
