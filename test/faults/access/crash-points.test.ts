import assert from 'node:assert/strict';
import type { HttpScript } from '../../../sandbox/http-script.ts';
import { until } from '../../../sandbox/wait.ts';
import { podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { orphansIn } from '../../support/orphans.ts';
import { RequestWitness } from '../../support/request-witness.ts';

/** The writes of a PodAccessRequest's life, in their order. */
const life = [
  'the grant',
  'the Pod',
  'the Role',
  'the RoleBinding',
  'the status with Ready',
  'the end of the RoleBinding',
  'the end of the Role',
  'the end of the Pod',
  'the end of the request',
  'the end of the finalizer',
];
const opening = 5;
/** Not before all writes of the opening, even on a busy machine. */
const endsAfter = '5s';

describe('a server that dies', () => {
  let stage: AccessStage;
  let witness: RequestWitness;
  const requests: StoredRequest[] = [];

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    witness = RequestWitness.of(stage.plane, stage.namespace);
  });

  after(async () => {
    witness?.close();
    await stage?.close();
  });

  /** Forwards `count` writes to the stage's objects, drops the answer to the last one, and cuts every later call. */
  const dieAfter = (count: number): { script: HttpScript; dead: () => boolean } => {
    let writes = 0;
    const script: HttpScript = {
      onRequest: ({ method, path }) => {
        if (writes >= count) return 'cut';
        if (method === 'GET' || !path.includes(`/namespaces/${stage.namespace}/`) || path.includes('/events'))
          return 'pass';
        writes += 1;
        return writes === count ? 'cut-answer' : 'pass';
      },
    };
    return { script, dead: () => writes >= count };
  };

  for (const [index, write] of life.entries()) {
    it(`right after ${write} is continued by the next one`, async function () {
      this.timeout(120_000);
      const { script, dead } = dieAfter(index + 1);
      const proxy = await stage.plane.proxy(script);
      const { installation } = stage.server;
      await stage.server.kill();
      await stage.start({ installation, apiserver: proxy.server });

      const duration = index < opening ? '10m' : endsAfter;
      const request = await stage.createOk(stage.alice, podRequest(`point-${index}`, { duration }));
      await until(`write ${index + 1}`, dead, { timeoutMs: 30_000, everyMs: 5 });
      await stage.server.kill();
      await proxy.close();
      await stage.start({ installation });

      if (index < opening) {
        await stage.ready(request);
        const kinds = (await stage.children(request.metadata.uid)).map(({ kind }) => kind);
        assert.deepEqual(kinds, ['Pod', 'Role', 'RoleBinding']);
        await stage.alice.call('DELETE', stage.urlOf(request.kind, request.metadata.name));
      }
      await stage.closed(request);
      requests.push(request);
      assert.deepEqual(witness.changedDecisions(), []);
      assert.deepEqual(await orphansIn(stage.plane, stage.namespace), []);
    });
  }

  it('leaves no request that never ends', async () => {
    assert.equal(requests.length, life.length);
    await Promise.all(requests.map((request) => stage.gone(request)));
  });
});
