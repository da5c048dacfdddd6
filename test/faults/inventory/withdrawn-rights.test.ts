import { InventoryStage } from '../../support/inventory/stage.ts';
import { itNamesWithdrawn } from '../../support/withdraw.ts';

describe('a permission of the inventory server that is withdrawn while no object changes', () => {
  let stage: InventoryStage;

  before(async function () {
    this.timeout(180_000);
    stage = await InventoryStage.open();
  });
  after(() => stage?.close());

  const readiness = async (): Promise<string> => (await stage.server.health('readyz')).text();
  const group = 'inventory.drawbridge.dev';
  const withdrawn = { clusterRole: 'drawbridge-inventory', resource: 'componentreconcilers', group };
  itNamesWithdrawn(withdrawn, () => ({ plane: stage.plane, readiness }));
});
