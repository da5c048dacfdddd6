import { AccessStage } from '../../support/access-stage.ts';
import { itNamesWithdrawn } from '../../support/withdraw.ts';

describe('a permission of the access server that is withdrawn while no object changes', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open({ fresh: true });
  });
  after(async () => {
    stage?.ignoreEarlierCalls();
    await stage?.close();
  });

  const readiness = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${stage.server.healthPort}/readyz`)).text();
  const withdrawn = { clusterRole: 'drawbridge', resource: 'services', group: '' };
  // Watches last up to six minutes, and only the next one is refused.
  itNamesWithdrawn(withdrawn, () => ({ plane: stage.plane, readiness }), 380_000);
});
