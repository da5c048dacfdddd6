import assert from 'node:assert/strict';
import { userRoles } from '../../../sandbox/installation.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { sharedPlane } from '../../support/plane.ts';

describe('make sandbox WITH=drawbridge', () => {
  let plane: Plane;
  before(async () => {
    plane = await sharedPlane();
  });

  it('has every ClusterRole that a message of drawbridge names', async () => {
    const roles = await userRoles(plane);
    assert.deepEqual(roles.map(({ metadata }) => metadata.name).sort(), [
      'drawbridge-approver',
      'drawbridge-inventory-viewer',
      'drawbridge-requester',
      'drawbridge-session-auditor',
      'drawbridge-viewer',
    ]);
    const list = { apiVersion: 'v1', kind: 'List', items: roles };
    await plane.kubectl(['apply', '--dry-run=server', '-f', '-'], { input: JSON.stringify(list) });
  });
});
