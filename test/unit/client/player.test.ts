import assert from 'node:assert/strict';
import { play } from '../../../src/client/player.ts';
import { printableLines } from '../../../src/kit/printable.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const ESC = '\u001b';
const v2 = (...events: unknown[][]): string[] => [
  JSON.stringify({ version: 2, width: 80, height: 24, title: 'x' }),
  ...events.map((event) => JSON.stringify(event)),
];

describe('the player of recordings', () => {
  let clock: SimulatedClock;
  let shown: string;
  let errors: string;
  let abort: AbortController;

  beforeEach(() => {
    clock = new SimulatedClock();
    [shown, errors] = ['', ''];
    abort = new AbortController();
  });

  const start = (
    lines: readonly string[],
    { terminal = true, asLines = false, speed = undefined as number | undefined, columns = 80 } = {},
  ): Promise<void> => {
    const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
    // In parts that end anywhere.
    const parts = async function* () {
      for (let at = 0; at < bytes.length; at += 7) yield bytes.subarray(at, at + 7);
    };
    return play(parts(), {
      io: {
        show: async (text) => {
          shown += text;
        },
        print: (text) => {
          shown += printableLines(text);
        },
        printError: (text) => {
          errors += text;
        },
        terminal: { input: false, output: terminal, error: terminal },
        columns,
      },
      clock,
      signal: abort.signal,
      asLines,
      speed,
    });
  };

  it('shows output and markers, no input, and drops what a terminal would answer', async () => {
    await start(
      v2([0, 'o', `a${ESC}[6n`], [0, 'i', 'secret'], [0, 'r', '9x9'], [0, 'm', `ends ${ESC}[2J`], [0, 'o', 'b']),
    );
    assert.match(shown, /^a\r\n\[drawbridge\] ends \?\[2J\r\nb/);
    assert.doesNotMatch(shown, /secret|6n/);
  });

  it('leaves a terminal as it was, also if the user stops it', async () => {
    const playing = start(v2([0, 'o', `${ESC}[?1049h${ESC}[?25l${ESC}[31m`], [60, 'o', 'never']), { speed: 1 });
    await clock.advance(100);
    abort.abort(new Error('stopped'));
    await assert.rejects(playing, /stopped/);
    assert.ok(shown.endsWith('\r\n'));
    for (const sequence of ['[?1049l', '[m', '[?7;25h']) assert.ok(shown.includes(`${ESC}${sequence}`), sequence);
    assert.doesNotMatch(shown, /never/);
  });

  it('passes output on unchanged without a terminal, and its markers on standard error', async () => {
    await start(v2([0, 'o', `a${ESC}[6n`], [5, 'm', 'the session ended']), { terminal: false });
    assert.equal(shown, `a${ESC}[6n`);
    assert.equal(errors, '[drawbridge] the session ended\n');
  });

  it('prints the lines as they are, without what a terminal would obey', async () => {
    const lines = v2([0, 'o', `a${ESC}[6n\u009b6n`], [0, 'm', 'end']);
    await start(lines, { asLines: true, terminal: false });
    assert.equal(shown, `${lines.join('\n')}\n`);
    shown = '';
    await start(lines, { asLines: true });
    assert.equal(shown, `${lines.join('\n')}\n`.replace('\u009b', '?'));
  });

  for (const [speed, last] of [
    [1, 3500],
    [2, 1750],
    [0.5, 7000],
  ] as const) {
    it(`takes the time of the session at speed ${speed}, but at most 2 s for a pause`, async () => {
      const playing = start(v2([1, 'o', 'first'], [100, 'o', 'second'], [100.5, 'o', 'third']), { speed });
      await clock.advance(last - 1);
      assert.match(shown, /second/);
      assert.doesNotMatch(shown, /third/);
      await clock.advance(1);
      await playing;
      assert.match(shown, /third/);
    });
  }

  it('plays asciicast v3, whose times count from the event before', async () => {
    const lines = [
      JSON.stringify({ version: 3, term: { cols: 80, rows: 24 } }),
      '# a comment',
      '[1, "o", "first"]',
      '[1, "o", "second"]',
      '[0.5, "x", "0"]',
    ];
    const playing = start(lines, { speed: 1 });
    await clock.advance(1999);
    assert.doesNotMatch(shown, /second/);
    await clock.advance(1000);
    await playing;
    assert.match(shown, /^firstsecond/);
  });

  it('says that lines may wrap if the terminal is narrower than that of the session', async () => {
    await start(v2(), { columns: 60 });
    assert.match(errors, /the terminal of the session has 80 x 24 characters/);
  });

  const broken: readonly [what: string, lines: readonly string[], error: RegExp][] = [
    ['nothing', [], /line 1 is not the header/],
    ['another file', ['root:x:0:0'], /line 1 is not the header/],
    ['another version', ['{"version":1,"width":1,"height":1}'], /line 1 is not the header/],
    ['a header without a size', ['{"version":2}'], /line 1 is not the header/],
    ['a line that is no event', [...v2([0, 'o', 'a']), '{}'], /line 3 of the recording is not an event/],
    ['a time that is no number', v2(['soon', 'o', 'a']), /line 2 of the recording is not an event/],
    ['a time before the beginning', v2([-1, 'o', 'a']), /line 2 of the recording is not an event/],
    ['a text that is none', v2([1, 'o', { toString: 1 }]), /line 2 of the recording is not an event/],
  ];
  for (const [what, lines, error] of broken) {
    it(`refuses ${what}`, () => assert.rejects(start(lines), error));
  }
});
