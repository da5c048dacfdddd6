import assert from 'node:assert/strict';
import fc from 'fast-check';
import { durationText, parseGoDuration, toMilliseconds } from '../../../src/kit/go-duration.ts';
import { anyCharacter } from '../../support/any-character.ts';

const S = 1_000_000_000n;
const MAX = (1n << 63n) - 1n;

describe('parseGoDuration', () => {
  const accepted: [string, bigint][] = [
    ['0', 0n],
    ['-0', 0n],
    ['+0', 0n],
    ['0s', 0n],
    ['5s', 5n * S],
    ['30s', 30n * S],
    ['1478s', 1478n * S],
    ['-5s', -5n * S],
    ['+5s', 5n * S],
    ['5.0s', 5n * S],
    ['5.6s', 5_600_000_000n],
    ['5.s', 5n * S],
    ['.5s', 500_000_000n],
    ['1.004s', 1_004_000_000n],
    ['100.00100s', 100_001_000_000n],
    ['10ns', 10n],
    ['11us', 11_000n],
    ['12µs', 12_000n],
    ['12μs', 12_000n],
    ['13ms', 13_000_000n],
    ['15m', 900n * S],
    ['16h', 57_600n * S],
    ['3h30m', 12_600n * S],
    ['10.5s4m', 250_500_000_000n],
    ['-2m3.4s', -123_400_000_000n],
    ['1h2m3s4ms5us6ns', 3_723_004_005_006n],
    ['39h9m14.425s', 140_954_425_000_000n],
    ['52763797000ns', 52_763_797_000n],
    ['0.3333333333333333333h', 1200n * S],
    ['9007199254740993ns', 9_007_199_254_740_993n],
    ['9223372036854775807ns', MAX],
    ['9223372036854775.807us', MAX],
    ['9223372036s854ms775us807ns', MAX],
    ['-9223372036854775808ns', -MAX - 1n],
    ['0.100000000000000000000h', 360n * S],
    ['0.830103483285477580700h', 2_988_372_539_827n],
    ['000000000000000000000000000001s', S],
  ];
  for (const [text, ns] of accepted) {
    it(`reads ${text}`, () => assert.deepEqual(parseGoDuration(text), { ns }));
  }

  const refused: [error: RegExp, texts: string[]][] = [
    [/not a duration/, ['', '-', '+', 's', '.', '-.', '.s', '+.s', '--1s', '１s']],
    [/without a unit/, ['3', '1h30']],
    [/unknown unit "d"/, ['1d']],
    [/unknown unit "hour"/, ['1hour']],
    [/unknown unit "h "/, ['1h 30m']],
    [/unknown unit "e"/, ['1e3s']],
    [/unknown unit " s"/, ['1 s']],
    [/unknown unit "S"/, ['1S']],
    [/unknown unit "s\\n"/, ['1s\n']],
    [/unknown unit "s-"/, ['1s-1s']],
    [/out of range/, ['9223372036854775808ns', '9223372036854775.808us', '-9223372036854775809ns']],
    [/out of range/, ['3000000h', '99999999999999999999999s', '2562047h47m16.854775808s']],
    [/longer than 256/, [`${'1'.repeat(300)}s`]],
  ];
  for (const [error, texts] of refused) {
    for (const text of texts) {
      it(`rejects ${JSON.stringify(text.slice(0, 30))}`, () => {
        const parsed = parseGoDuration(text);
        assert.match('error' in parsed ? parsed.error : 'accepted', error);
      });
    }
  }

  it('names the allowed values', () => {
    const parsed = parseGoDuration('1d');
    assert.match('error' in parsed ? parsed.error : '', /ns, us, µs, ms, s, m, or h.*"1h30m"/);
  });

  it('returns a duration or an error for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        const parsed = parseGoDuration(text);
        assert.ok('ns' in parsed !== 'error' in parsed);
      }),
      { seed: 1 },
    );
  });
});

describe('the text of a duration', () => {
  const printed: [string, string][] = [
    ['0s', '0 s'],
    ['999ns', '0 s'],
    ['250ms', '250 ms'],
    ['1.5s', '1.5 s'],
    ['45s', '45 s'],
    ['60s', '1 min'],
    ['90m', '1 h 30 min'],
    ['14400s', '4 h'],
    ['24h', '24 h'],
    ['36h', '36 h'],
    ['48h', '2 days'],
    ['49h', '49 h'],
    ['168h', '7 days'],
    ['1h0m1s', '1 h 1 s'],
    ['8h0m0.000000001s', '8 h'],
    ['-90m', '-1 h 30 min'],
  ];
  for (const [duration, text] of printed) {
    it(`of ${duration} is ${text}`, () => {
      const parsed = parseGoDuration(duration);
      assert.equal('ns' in parsed && durationText(parsed.ns), text);
    });
  }
});

describe('toMilliseconds', () => {
  it('rounds towards zero', () => {
    assert.deepEqual([1_999_999n, -1_999_999n, 5_400n * S].map(toMilliseconds), [1, -1, 5_400_000]);
  });
});
