import assert from 'node:assert/strict';
import { type Plane, startPlane } from '../../../sandbox/plane.ts';
import { ServerProcess } from '../../../sandbox/server-process.ts';
import { until } from '../../../sandbox/wait.ts';
import { accessTemplate, targetOf } from '../../support/access-manifests.ts';
import { conditionOf, podRequest } from '../../support/access-requests.ts';
import { AccessStage, administrator } from '../../support/access-stage.ts';

const kind = 'PodAccessTemplate';
const record = '/api/v1/namespaces/drawbridge-system/secrets/drawbridge-policies';

describe('a template that was stored before the installation', function () {
  this.timeout(180_000);
  let plane: Plane;
  let stage: AccessStage;

  before(async () => {
    plane = await startPlane({ onProgress: (line) => console.error(line) });
    stage = await AccessStage.open({ on: plane });
    await stage.stop();
    await stage.removeWebhooks();
    assert.equal((await plane.call('DELETE', record)).status, 200);
    await stage.apply(
      accessTemplate(kind, 'unseen'),
      accessTemplate(kind, 'privileged', { ...targetOf('payments'), allowPrivilegedPod: true }),
      accessTemplate(kind, 'forged', { ...targetOf('payments'), author: administrator() }),
    );
    const installing = await ServerProcess.spawn(plane);
    const hasRecord = async (): Promise<boolean> => (await plane.probe(record)).status === 200;
    await until('the end of the gap', hasRecord, { timeoutMs: 90_000 });
    await installing.stop();
    await stage.start();
  });
  after(async () => {
    await stage?.close();
    await plane?.stop();
  });

  const trust = (trusts: boolean): Promise<void> =>
    stage.start({
      installation: stage.server.installation,
      flags: [`--trust-existing-templates=${trusts}`],
    });
  const refused = async (name: string, reason: string): Promise<void> => {
    const template = await stage.templateReady(kind, name, false);
    assert.equal(conditionOf(template, 'AuthorHoldsRights')?.reason, reason);
    const asked = podRequest('through', { templateName: name });
    assert.match(await stage.answered(403, stage.alice, asked), /TemplateNotReady: .*AuthorHoldsRights is not True/);
  };

  it('opens nothing', async () => {
    await refused('unseen', 'AuthorUnknown');
    await refused('privileged', 'AuthorUnknown');
    await refused('forged', 'PoliciesMissing');
  });

  it('opens access if the server trusts existing templates, unless it is privileged or names an author', async () => {
    await stage.stop();
    await trust(true);
    await stage.templateReady(kind, 'unseen');
    await stage.createReady(stage.alice, podRequest('trusted', { templateName: 'unseen', duration: '10m' }));
    await refused('privileged', 'AuthorUnknown');
    await refused('forged', 'PoliciesMissing');
    await stage.stop();
    await trust(false);
    await refused('unseen', 'AuthorUnknown');
  });

  it('opens access once an author with all the permissions has written it', async () => {
    for (const name of ['unseen', 'forged']) {
      const claim = { spec: { author: { username: 'me' } } };
      assert.equal((await plane.call('PATCH', stage.urlOf(kind, name), claim)).status, 200);
      await stage.templateReady(kind, name);
      await stage.createReady(stage.alice, podRequest(`by-${name}`, { templateName: name, duration: '10m' }));
    }
  });
});
