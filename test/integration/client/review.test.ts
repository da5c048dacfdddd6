import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Client } from '../../support/client.ts';

describe('a person who changes a template', () => {
  let stage: AccessStage;
  let client: Client;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    client = new Client(stage);
  });
  after(() => stage?.close());

  it('sees from the journal who would gain or lose access', async () => {
    await stage.createReady(stage.alice, podRequest('of-alice', { duration: '10m' }));
    await stage.createReady(stage.carol, podRequest('of-carol', { duration: '10m' }));
    const { code } = await client.run(stage.bob, 'request', 'pod', 'payments-shell', '--no-wait');
    assert.equal(code, 3);
    for (const name of ['of-alice', 'of-carol'])
      await stage.auditLine(`the grant ${name}`, ({ event, what }) => event === 'grant' && what.name === name);
    const template = JSON.parse(await stage.kubectl('get', 'pat', 'payments-shell', '-o', 'json'));
    const file = join(stage.plane.directory, `${stage.namespace}-template.json`);
    const review = async (change: object, ...flags: string[]): Promise<string> => {
      const { spec } = template;
      const accessConfig = { ...spec.accessConfig, ...change };
      await writeFile(file, JSON.stringify({ ...template, spec: { ...spec, accessConfig } }));
      return client.ok(stage.alice, 'review', file, stage.server.auditFile, '--since', '1h', ...flags);
    };
    assert.equal(await review({}), '');
    const narrower = await review({ allowedGroups: ['sre'] });
    assert.match(narrower, /^WHO +CHANGE +REQUESTS +WHAT$/m);
    assert.match(narrower, /^alice +loses +1 +access: NotEligible: /m);
    assert.match(narrower, /^carol +loses +1 +access: NotEligible: /m);
    assert.doesNotMatch(narrower, /bob/);
    const wider = await review({
      allowedGroups: ['devs', 'sre', 'qa'],
      defaultDuration: '5m',
      maxDuration: '5m',
    });
    assert.match(wider, /^bob +gains +1 +access for 5 min$/m);
    assert.match(wider, /^alice +loses +1 +time: 5 min instead of 10 min$/m);
    assert.match(wider, /^carol +loses +1 +time: 5 min instead of 10 min$/m);
  });
});
