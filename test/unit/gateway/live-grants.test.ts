import assert from 'node:assert/strict';
import { GatewayCluster } from '../../support/gateway-cluster.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

describe('a call for a grant', () => {
  const second = 1000;

  function stage() {
    const clock = new SimulatedClock();
    const cluster = new GatewayCluster(clock);
    const answers: string[] = [];
    const call = ({ namespace, name } = cluster.grant): void => {
      void cluster.grants
        .findOrWait(namespace, name, new AbortController().signal)
        .then((found) => answers.push('status' in found ? `${found.status} ${found.code}` : `open: ${found.name}`));
    };
    const open = () => cluster.open(clock.now() + 60 * second);
    return { clock, cluster, answers, call, open };
  }

  it('is answered at once if a request has the grant', async () => {
    const { clock, cluster, answers, call, open } = stage();
    open();
    call();
    await clock.advance(0);
    assert.deepEqual(answers, [`open: ${cluster.grant.name}`]);
  });

  it('waits until the watch reports the request, because the requester may be faster', async () => {
    const { clock, cluster, answers, call, open } = stage();
    call();
    await clock.advance(2 * second - 1);
    assert.deepEqual(answers, []);
    open();
    await clock.advance(0);
    assert.deepEqual(answers, [`open: ${cluster.grant.name}`]);
  });

  it('is refused after 2 s if no request has the grant', async () => {
    const { clock, cluster, answers, call, open } = stage();
    call({ ...cluster.grant, name: 'other' });
    open();
    await clock.advance(2 * second - 1);
    assert.deepEqual(answers, []);
    await clock.advance(1);
    assert.deepEqual(answers, ['403 NoGrant']);
  });

  it('is refused at once if the access has ended', async () => {
    const { clock, cluster, answers, call, open } = stage();
    open();
    cluster.change({ spec: { templateName: 'payments-exec', revoked: true } });
    call();
    await clock.advance(0);
    assert.deepEqual(answers, ['403 NoGrant']);
  });

  it('is refused at once while 256 calls wait', async () => {
    const { clock, answers, call } = stage();
    for (let count = 0; count < 256; count++) call();
    await clock.advance(0);
    assert.deepEqual(answers, []);
    call();
    await clock.advance(0);
    assert.deepEqual(answers, ['403 NoGrant']);
    await clock.advance(2 * second);
    assert.equal(answers.length, 257);
  });
});
