import assert from 'node:assert/strict';
import fc from 'fast-check';
import { chooseDuration, verifyDurations } from '../../../../src/access/policy/duration-choice.ts';
import { runs } from '../../../support/runs.ts';

const minute = 60_000;

describe('duration choice', () => {
  for (const [asked, defaultDuration, maxDuration, minutes, clamped, message] of [
    [undefined, '1h', '24h', 60, false, /template's default of 1 h$/],
    ['', '30m', '24h', 30, false, /default of 30 min$/],
    ['30m', '1h', '24h', 30, false, /^30 min, as requested$/],
    ['24h', '1h', '24h', 1440, false, /as requested/],
    ['48h', '1h', '24h', 1440, true, /^requested 2 days, limited to the template's maximum of 24 h$/],
    ['2562047h', '1h', '24h', 1440, true, /maximum of 24 h/],
    [undefined, '5h', '1h', 60, false, /^the template's maximum of 1 h, because its default of 5 h is longer$/],
    ['1.5h', '1h', '24h', 90, false, /1 h 30 min/],
  ] as const) {
    it(`of ${asked} with default ${defaultDuration} and maximum ${maxDuration} is ${minutes} minutes`, () => {
      const chosen = chooseDuration(asked, { defaultDuration, maxDuration });
      assert.ok(!('code' in chosen), JSON.stringify(chosen));
      assert.equal(chosen.grantedMs, minutes * minute);
      assert.equal(chosen.clamped, clamped);
      assert.match(chosen.message, message);
    });
  }

  for (const [asked, defaultDuration, maxDuration, field] of [
    ['soon', '1h', '24h', 'spec.duration'],
    ['0s', '1h', '24h', 'spec.duration'],
    ['-1h', '1h', '24h', 'spec.duration'],
    ['1h', 'x', '24h', 'spec.accessConfig.defaultDuration'],
    ['1h', '1h', '', 'spec.accessConfig.maxDuration'],
    [undefined, '1h', '-24h', 'spec.accessConfig.maxDuration'],
    [undefined, '1h', '87601h', 'spec.accessConfig.maxDuration'],
  ] as const) {
    it(`rejects ${asked} with default ${defaultDuration} and maximum ${maxDuration}`, () => {
      const chosen = chooseDuration(asked, { defaultDuration, maxDuration });
      assert.ok('code' in chosen);
      assert.equal(chosen.code, 'InvalidDuration');
      assert.equal(chosen.field, field);
    });
  }

  it('detects a default that is longer than the maximum', () => {
    assert.match(
      verifyDurations({ defaultDuration: '2h', maxDuration: '1h' })[0]?.message ?? '',
      /2 h is longer than .* 1 h/,
    );
    assert.deepEqual(verifyDurations({ defaultDuration: '1h', maxDuration: '1h' }), []);
    assert.equal(
      verifyDurations({ defaultDuration: '1h', maxDuration: 'x' })[0]?.field,
      'spec.accessConfig.maxDuration',
    );
  });

  it('never grants more than the maximum or less than a second, for any input', () => {
    const text = fc.oneof(
      fc
        .tuple(fc.nat(100_000), fc.constantFrom('ns', 'us', 'ms', 's', 'm', 'h', '', 'd'))
        .map(([n, unit]) => `${n}${unit}`),
      fc.string({ maxLength: 8 }),
    );
    fc.assert(
      fc.property(text, text, text, (asked, defaultDuration, maxDuration) => {
        const chosen = chooseDuration(asked, { defaultDuration, maxDuration });
        const longest = chooseDuration('87600h', { defaultDuration, maxDuration });
        if ('code' in chosen) return;
        assert.ok(!('code' in longest));
        assert.ok(chosen.grantedMs >= 1000 && chosen.grantedMs <= longest.grantedMs);
      }),
      { seed: 3, numRuns: runs(2000) },
    );
  });
});
