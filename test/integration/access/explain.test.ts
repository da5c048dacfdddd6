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

  it('shows an eligible caller that every rule passes', async () => {
    const { code, warnings } = await create(stage.alice, podRequest('why'), '--dry-run=server');
    assert.equal(code, 0);
    assert.deepEqual(warnings, [
      'pass requester: spec.requester names the caller',
      'pass identity: the caller is logged in',
      'pass template: the template exists in the namespace of the request',
      'pass template-ready: the template is ready',
      'pass template-groups: the template names groups of people, not groups of Kubernetes itself',
      'pass eligible: the caller is in an allowed group, or already holds in the namespace what the template gives',
      'pass duration: the duration can be granted',
      'pass target-pod: spec.targetPod, if set, is a valid pod name',
      'pass not-revoked: the request is not revoked',
      'pass requester-groups: spec.requester claims no group that the caller is not in',
      'pass limits: one more grant stays within the limits of user, template, and namespace',
    ]);
  });

  it('shows a denied caller every reason at once, with remedies', async () => {
    const { code, warnings, error } = await create(
      stage.bob,
      execRequest('why', { duration: 'a while' }),
      '--dry-run=server',
    );
    assert.notEqual(code, 0);
    assert.match(error ?? '', /NotEligible: /);
    assert.deepEqual(
      warnings.filter((line) => !line.startsWith('pass ')),
      [
        'FAIL eligible: the caller is in an allowed group, or already holds in the namespace what the template gives; to pass: join one of [devs, sre]',
        'FAIL duration: the duration can be granted; to pass: write a Go duration from 1s up, such as 30m, or leave spec.duration out',
      ],
    );
  });

  it('shows no rules without --dry-run', async () => {
    assert.deepEqual((await create(stage.alice, podRequest('meant'))).warnings, []);
    assert.deepEqual((await create(stage.bob, podRequest('meant-too'))).warnings, []);
  });
});
