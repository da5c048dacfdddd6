import assert from 'node:assert/strict';
import { execRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

describe('of an existing request', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    await stage.createReady(stage.alice, execRequest('kept', { duration: '10m' }));
  });
  after(() => stage?.close());

  const changes: [string, object][] = [
    ['the template', { templateName: 'other' }],
    ['the duration', { duration: '2h' }],
    ['a pod, if none was named', { targetPod: 'payments-0' }],
    ['the requester', { requester: { username: 'mallory', uid: '', groups: [], time: '2026-11-21T09:00:00Z' } }],
    ['a duration that is taken out', { duration: null }],
  ];
  for (const [title, spec] of changes) {
    it(`${title} cannot change`, async () => {
      const before = await stage.read('ExecAccessRequest', 'kept');
      const { code, stderr } = await stage.plane.kubectl(
        ['patch', '-n', stage.namespace, 'execaccessrequest', 'kept', '--type=merge', '-p', JSON.stringify({ spec })],
        { reject: false },
      );
      assert.equal(code, 1);
      assert.match(
        stderr,
        /spec: Forbidden: SpecImmutable: only claimed, extensions, and revoked with its reason can change; to extend open access, if the template allows extensions, add an entry to spec\.extensions \(drawbridge extend\); for all else, create another request/,
      );
      assert.deepEqual(await stage.read('ExecAccessRequest', 'kept'), before);
    });
  }
});
