import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { createLog, type LogOptions } from '../../../src/observe/log.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

function setUp(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const clock = new SimulatedClock(Date.UTC(2026, 10, 21, 9, 30));
  return { lines, log: createLog({ clock, write: (line) => lines.push(line), ...options }) };
}

describe('createLog', () => {
  it('writes one JSON object on each line, with the standard fields first', () => {
    const { log, lines } = setUp();
    log.info('granted', { request: 'ns/a', seconds: 30, groups: ['devs'], absent: undefined });
    assert.deepEqual(lines, [
      '{"time":"2026-11-21T09:30:00.000000Z","level":"info","message":"granted","request":"ns/a","seconds":30,"groups":["devs"]}\n',
    ]);
  });

  it('writes readable text', () => {
    const { log, lines } = setUp({ format: 'text' });
    log.warn('reconcile failed', { key: 'ns/a', error: 'no such "pod"', n: 3 });
    assert.deepEqual(lines, [
      '2026-11-21T09:30:00.000000Z WARN  reconcile failed key=ns/a error="no such \\"pod\\"" n=3\n',
    ]);
  });

  it('omits lines below its level', () => {
    const { log, lines } = setUp({ level: 'warn' });
    log.debug('no');
    log.info('no');
    log.warn('yes');
    log.error('yes');
    assert.equal(lines.length, 2);
  });

  it('adds the fields of a child logger only to its lines', () => {
    const { log, lines } = setUp();
    const child = log.child({ controller: 'expiry' }).child({ key: 'a' });
    child.info('x', { key: 'b' });
    log.info('y');
    assert.match(lines[0] ?? '', /"controller":"expiry","key":"b"}/);
    assert.doesNotMatch(lines[1] ?? '', /controller/);
  });

  it('never replaces the time, level, or message by a field', () => {
    const { log, lines } = setUp();
    log.info('real', { message: 'forged', level: 'debug', time: 'never' });
    const line = JSON.parse(lines[0] ?? '');
    assert.deepEqual([line.message, line.level, line.message_], ['real', 'info', 'forged']);
  });

  for (const format of ['json', 'text'] as const) {
    it(`keeps hostile text within one line of ${format}`, () => {
      const hostile = fc.string({
        unit: fc.constantFrom('a', '\n', '\r', '\u2028', '\u202e', '\u009b', '\x1b', '\0', '"', ' '),
      });
      fc.assert(
        fc.property(hostile, hostile, hostile, (message, key, value) => {
          const { log, lines } = setUp({ format });
          log.info(message, { [key]: value });
          assert.equal(lines.length, 1);
          // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not be there.
          assert.match(lines[0] ?? '', /^[^\u0000-\u001f\u007f-\u009f\u2028\u2029\u202e]*\n$/);
          if (format === 'json') assert.equal(JSON.parse(lines[0] ?? '').message, message);
        }),
        { seed: 20261121 },
      );
    });
  }

  it('cuts values above 4,096 characters, and adds the original length', () => {
    for (const format of ['json', 'text'] as const) {
      const { log, lines } = setUp({ format });
      const long = 'x'.repeat(3_000_000);
      log.error(long, { long, exact: 'y'.repeat(4_096), list: Array.from({ length: 1_000 }, () => 'z') });
      const line = lines[0] ?? '';
      assert.ok(line.length < 14_000, `${line.length} characters`);
      assert.equal(line.split('… (3000000 characters)').length, 3);
      assert.ok(line.includes('y'.repeat(4_096)) && !line.includes(`${'y'.repeat(4_096)}…`));
    }
  });

  it('has written every line to stderr when the process exits at once', () => {
    // The writer drops lines if the reader stalls; about 270 small ones fill the socket.
    const script = `
      import { createLog } from './src/observe/log.ts';
      import { systemClock } from './src/kit/clock.ts';
      const log = createLog({ clock: systemClock });
      for (let i = 0; i < 100; i++) log.info('line', { i });
      process.exit(3);`;
    const child = spawnSync(process.execPath, ['--import=tsx', '--input-type=module', '-e', script], {
      encoding: 'utf8',
      maxBuffer: 2 ** 24,
    });
    assert.equal(child.status, 3, child.stderr.slice(0, 2000));
    assert.equal(child.stderr.split('\n').filter((line) => line.includes('"message":"line"')).length, 100);
  });
});
