import assert from 'node:assert/strict';
import { execRequest, type Manifest, podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import type { Person } from '../../support/person.ts';

describe('kubectl create --dry-run=server', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  const create = async (person: Person, manifest: Manifest, ...flags: string[]) => {
    const args = ['create', '-n', stage.namespace, '-f', '-', ...flags];
    const { code, stderr } = await person.kubectl(args, { input: JSON.stringify(manifest), reject: false });
    const lines = stderr.split('\n');
    const warnings = lines.filter((line) => line.startsWith('Warning: ')).map((line) => line.slice('Warning: '.length));
    return { code, warnings, error: lines.find((line) => line.startsWith('Error')) };
  };

  it('shows an eligible caller how many rules pass', async () => {
    const { code, warnings } = await create(stage.alice, podRequest('why'), '--dry-run=server');
    assert.equal(code, 0);
    assert.deepEqual(warnings, ['17 rules passed']);
  });

  it('shows a denied caller every reason first, with remedies', async () => {
    const { code, warnings, error } = await create(
      stage.bob,
      execRequest('why', { duration: 'a while' }),
      '--dry-run=server',
    );
    assert.notEqual(code, 0);
    assert.match(error ?? '', /NotEligible: /);
    assert.deepEqual(warnings, [
      'FAIL eligible: the caller is in an allowed group, or already holds in the namespace what the template gives; to pass: join one of [devs, sre]',
      'FAIL duration: the duration can be granted; to pass: write a Go duration from 1s up, such as 30m, or leave spec.duration out',
      '15 rules passed',
    ]);
  });

  it('shows no rules without --dry-run', async () => {
    assert.deepEqual((await create(stage.alice, podRequest('meant'))).warnings, []);
    assert.deepEqual((await create(stage.bob, podRequest('meant-too'))).warnings, []);
  });
});
