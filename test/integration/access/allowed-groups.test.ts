import assert from 'node:assert/strict';
import { requestLabel } from '../../../src/api/access/names.ts';
import { role, roleBinding } from '../../support/access-manifests.ts';
import { execRequest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Person } from '../../support/person.ts';

describe('a user without an allowed group', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  for (const manifest of [podRequest('by-bob'), execRequest('by-bob')]) {
    it(`gets no ${manifest.kind}, and the message names the allowed groups`, async () => {
      const { code, stderr } = await stage.bob.kubectl(['create', '-n', stage.namespace, '-f', '-'], {
        input: JSON.stringify(manifest),
        reject: false,
      });
      assert.equal(code, 1);
      assert.match(
        stderr,
        /NotEligible: user bob is in \[qa, system:authenticated\]; template payments-(shell|exec) allows \[devs, sre\]/,
      );
      assert.equal(await stage.read(manifest.kind, 'by-bob'), undefined);
    });
  }

  it('creates no object', async () => {
    const left = await stage.kubectl('get', 'pods,roles,rolebindings', '-l', requestLabel, '-o', 'name');
    assert.equal(left, '');
  });

  describe('with their own permissions in the namespace', () => {
    const kinds = ['PodAccessRequest', 'ExecAccessRequest'];
    const rows: [string, string[], string[]][] = [
      ['only exec', ['pods/exec'], ['ExecAccessRequest']],
      ['only create pods', ['pods'], []],
      ['exec and create pods', ['pods/exec', 'pods'], ['PodAccessRequest', 'ExecAccessRequest']],
    ];
    for (const [index, [title, resources, gets]] of rows.entries()) {
      it(`to ${title}: gets ${gets.join(' and ') || 'nothing'}`, async () => {
        const user = `dora-${index}`;
        const dora = await Person.of(stage.plane, user, []);
        await stage.apply(role(user, { apiGroups: [''], resources, verbs: ['create'] }));
        for (const held of [user, 'request-access']) {
          await stage.apply(roleBinding(held, [user], `${user}-${held}`));
        }
        for (const resource of resources) {
          const [plural = '', subresource = ''] = resource.split('/');
          await stage.allowed(user, { verb: 'create', resource: plural, subresource });
        }
        for (const kind of kinds)
          await stage.allowed(user, {
            verb: 'create',
            group: 'crds.wizardofoz.co',
            resource: `${kind.toLowerCase()}s`,
          });
        for (const kind of kinds) {
          const request = kind === 'PodAccessRequest' ? podRequest : execRequest;
          const { status, body } = await stage.create(dora, request(`by-${user}`, { duration: '10m' }));
          assert.equal(status, gets.includes(kind) ? 201 : 403, `${kind}: ${JSON.stringify(body)}`);
          if (status === 201) await stage.ready(body as StoredRequest);
          else assert.match(JSON.stringify(body), /NotEligible/);
        }
      });
    }
  });
});
