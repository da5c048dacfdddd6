import assert from 'node:assert/strict';
import { userRoles } from '../../../sandbox/installation.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import { sharedPlane, testNamespace } from '../../support/plane.ts';

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
      'drawbridge-notification-admin',
      'drawbridge-requester',
      'drawbridge-session-auditor',
      'drawbridge-viewer',
    ]);
    const list = { apiVersion: 'v1', kind: 'List', items: roles };
    await plane.kubectl(['apply', '--dry-run=server', '-f', '-'], { input: JSON.stringify(list) });
  });

  it('lets requesters read the Events of their namespace, and of no other', async () => {
    const role = (await userRoles(plane)).find(({ metadata }) => metadata.name === 'drawbridge-requester');
    const namespace = await testNamespace('requester', plane);
    const copy = { ...role, kind: 'Role', metadata: { name: 'requester', namespace } };
    await plane.kubectl(['apply', '-f', '-'], { input: JSON.stringify(copy) });
    await plane.kubectl(['create', 'rolebinding', 'dana', '-n', namespace, '--role=requester', '--user=dana']);
    const asDana = async (of: string): Promise<string> => {
      const { stdout, stderr } = await plane.kubectl(['get', 'events', '-n', of, '--as=dana'], { reject: false });
      return stdout + stderr;
    };
    await until('dana to have the role', async () => !(await asDana(namespace)).includes('Forbidden'), {
      timeoutMs: 20_000,
    });
    assert.match(await asDana(namespace), /^No resources found in /);
    assert.match(await asDana('default'), /Forbidden.* User "dana" cannot list resource "events"/);
  });
});
