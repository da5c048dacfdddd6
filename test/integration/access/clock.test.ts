import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { type AccessInProcess, runAccess } from '../../support/access-in-process.ts';
import { deadlineOf, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { attested } from '../../support/attested.ts';
import { OffsetClock } from '../../support/offset-clock.ts';

const hourMs = 3_600_000;

describe('a wall clock that jumps', () => {
  let stage: AccessStage;
  let clock: OffsetClock;
  let controllers: AccessInProcess;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    // Stops the server, because the controllers run in this process from now on, with the clock of the test.
    await stage.stop();
    await stage.removeWebhooksOnly();
  });
  after(() => stage?.close());

  beforeEach(async () => {
    clock = new OffsetClock();
    controllers = await runAccess(stage.server.installation.kubeconfig, clock);
  });
  afterEach(() => controllers?.stop());

  const granted = async (name: string, duration: string): Promise<StoredRequest> => {
    return stage.createReady(stage.alice, attested(podRequest(name, { duration })));
  };

  const mayExec = ({ status }: StoredRequest): Promise<boolean> =>
    stage.alice.mayExec(stage.namespace, status?.podName ?? '');

  it('24 hours ahead ends a grant of one hour within a second', async () => {
    const request = await granted('ahead', '1h');
    assert.equal(await mayExec(request), true);
    clock.jump(24 * hourMs);
    await stage.shutTo(stage.alice, request.status?.podName ?? '');
    await stage.closed(request);
    assert.equal(controllers.records.at(-1)?.code, 'Expired');
  });

  it('one hour back never extends a grant', async () => {
    const request = await granted('back', '8s');
    clock.jump(-hourMs);
    await until('the deadline and one second', () => Date.now() >= deadlineOf(request) + 1000, {
      timeoutMs: 20_000,
      everyMs: 10,
    });
    assert.equal(await mayExec(request), false);
    await stage.closed(request);
  });

  it('one hour back and then forward again changes nothing', async () => {
    const request = await granted('both', '8s');
    clock.jump(-hourMs);
    clock.jump(hourMs);
    const isAfterDeadline = async (): Promise<boolean> => {
      const isOpen = await mayExec(request);
      // An answer that comes after the deadline, for example because the machine stalled, shows nothing.
      if (Date.now() >= deadlineOf(request)) return true;
      assert.equal(isOpen, true);
      return false;
    };
    await until('the deadline', isAfterDeadline, { timeoutMs: 20_000, everyMs: 100 });
    await until('the deadline and one second', () => Date.now() >= deadlineOf(request) + 1000, {
      timeoutMs: 20_000,
      everyMs: 10,
    });
    assert.equal(await mayExec(request), false);
    await stage.closed(request);
  });
});
