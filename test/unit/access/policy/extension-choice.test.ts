import assert from 'node:assert/strict';
import fc from 'fast-check';
import { chooseExtension } from '../../../../src/access/policy/extension-choice.ts';
import type { ExtensionConfig } from '../../../../src/api/access/access-config.ts';

const minute = 60_000;
const config: ExtensionConfig = { times: 2, total: '2h', approvals: 'None' };
/** Granted for 30 minutes. */
const open = { startMs: 0, endMs: 30 * minute, decided: 0, granted: 0, emergency: false };

describe('the extension of access', () => {
  for (const [what, by, over, minutes, shortenedBy] of [
    ['adds what was asked', '30m', open, 60, undefined],
    ['adds to earlier extensions', '30m', { ...open, endMs: 60 * minute, decided: 1, granted: 1 }, 90, undefined],
    ['reaches exactly the total', '90m', open, 120, undefined],
    ['ends with the total', '90m1s', open, 120, 'total'],
    ['ends with the pod', '90m', { ...open, podEndMs: 100 * minute + 999 }, 100, 'pod'],
    ['ends with the total before the pod', '90m1s', { ...open, podEndMs: 121 * minute }, 120, 'total'],
    ['ends with the total that is the deadline of the pod', '90m1s', { ...open, podEndMs: 120 * minute }, 120, 'total'],
    ['ends at a whole second', '1500ms', open, 30 + 1 / 60, undefined],
    ['ends with the total, however much was asked', '2562047h', open, 120, 'total'],
  ] as const) {
    it(what, () => assert.deepEqual(chooseExtension({ by }, config, over), { endMs: minutes * minute, shortenedBy }));
  }

  it('does not count refused extensions', () => {
    const { endMs } = open;
    const refused = { ...open, decided: 5, granted: 1 };
    assert.deepEqual(chooseExtension({ by: '5m' }, config, refused), {
      endMs: endMs + 5 * minute,
      shortenedBy: undefined,
    });
  });

  it('is no longer than the smallest max of the votes', () => {
    assert.deepEqual(chooseExtension({ by: '30m' }, config, open, 10 * minute), {
      endMs: 40 * minute,
      shortenedBy: 'vote',
    });
  });

  for (const [what, by, given, over, code] of [
    ['without extensions in the template', '30m', undefined, open, 'NotExtendable'],
    ['of an emergency', '30m', config, { ...open, emergency: true }, 'NotExtendable'],
    ['beyond the number of times', '30m', config, { ...open, decided: 2, granted: 2 }, 'NotExtendable'],
    ['beyond the total', '1s', config, { ...open, endMs: 120 * minute }, 'NotExtendable'],
    ['beyond the end of the pod', '1s', config, { ...open, podEndMs: open.endMs }, 'NotExtendable'],
    ['by nothing', '0s', config, open, 'InvalidDuration'],
    ['by less than a second', '999ms', config, open, 'InvalidDuration'],
    ['backwards', '-5m', config, open, 'InvalidDuration'],
    ['by what is no duration', 'long', config, open, 'InvalidDuration'],
  ] as const) {
    it(`is refused ${what}`, () => {
      const chosen = chooseExtension({ by }, given, over);
      assert.equal('code' in chosen && chosen.code, code);
    });
  }

  it('is refused because it is an emergency, whatever the template allows', () => {
    for (const given of [config, undefined]) {
      const chosen = chooseExtension({ by: '10m' }, given, { ...open, emergency: true });
      assert.equal('message' in chosen && chosen.message, 'emergency access cannot be extended; create a new request');
    }
  });

  it('says how long access lasts, which may be longer than the total', () => {
    const chosen = chooseExtension({ by: '10m' }, config, { ...open, endMs: 180 * minute });
    assert.equal(
      'message' in chosen && chosen.message,
      'asked for 10 min more; access already lasts 3 h, and the template allows 2 h in total; create a new request',
    );
  });

  it('never ends after the total and never before the present end', () => {
    fc.assert(
      fc.property(fc.nat(300), fc.nat(300), fc.option(fc.nat(300 * minute)), (endMinutes, by, maxMs) => {
        const endMs = endMinutes * minute;
        const chosen = chooseExtension({ by: `${by}m` }, config, { ...open, endMs }, maxMs ?? undefined);
        if ('code' in chosen) return;
        assert.ok(chosen.endMs > endMs && chosen.endMs <= 120 * minute);
      }),
    );
  });
});
