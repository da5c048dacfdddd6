import assert from 'node:assert/strict';
import {
  hasRuns,
  type RegistrationPaths,
  registrationViolation,
} from '../../../../src/inventory/policy/registration-rules.ts';

const registration = (name: string, spec: Partial<RegistrationPaths['spec']> = {}): RegistrationPaths => ({
  name,
  spec: { reads: [], kubeconfig: 'none', modes: ['managed', 'byoc'], ...spec },
});
const network = registration('network');
const kubeconfig = registration('kubeconfig', { modes: ['managed'] });
const byoc = registration('byoc', { modes: ['byoc'], writes: ['/status/outputs/kubeconfig'] });

describe('registrations', () => {
  const cases: [string, RegistrationPaths, RegistrationPaths[], [string, string] | undefined][] = [
    ['one alone', network, [], undefined],
    ['one beside others', network, [kubeconfig, byoc], undefined],
    ['one that replaces itself', network, [network], undefined],
    ['two of one path in different modes', byoc, [kubeconfig], undefined],
    [
      'one that reads what another writes',
      registration('a', { reads: ['/status/outputs/network'] }),
      [network],
      undefined,
    ],
    [
      'the output of another',
      registration('vnet', { writes: ['/status/outputs/network'] }),
      [network],
      ['PathTaken', 'spec.writes'],
    ],
    [
      'a part of the output of another',
      registration('vnet', { writes: ['/status/outputs/network/vnet'] }),
      [network],
      ['PathTaken', 'spec.writes'],
    ],
    [
      'what holds the output of another',
      network,
      [registration('vnet', { writes: ['/status/outputs/network/vnet'] })],
      ['PathTaken', 'metadata.name'],
    ],
    ['one path in a mode of both', registration('kubeconfig'), [byoc], ['PathTaken', 'metadata.name']],
    ['a path that begins like that of another', registration('net'), [network], undefined],
    [
      'its own output',
      registration('network', { reads: ['/status/outputs/network/v'] }),
      [],
      ['OwnOutputRead', 'spec.reads'],
    ],
    [
      'all outputs, its own among them',
      registration('a', { reads: ['/status/outputs'] }),
      [],
      ['OwnOutputRead', 'spec.reads'],
    ],
  ];
  for (const [what, one, others, expected] of cases) {
    it(`${expected ? `refuse ${expected[0]}:` : 'take'} ${what}`, () => {
      const violation = registrationViolation(one, others);
      assert.deepEqual(violation && [violation.code, violation.field], expected);
    });
  }

  it('stay while somebody needs them', () => {
    const violation = hasRuns('network', 'fleet/a.network');
    assert.deepEqual([violation.code, violation.status], ['HasRuns', 422]);
    assert.match(violation.message, /component network still has runs, fleet\/a\.network among them/);
  });
});
