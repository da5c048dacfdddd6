import assert from 'node:assert/strict';
import { podAccessRequests, podAccessTemplates } from '../../../../src/api/access/pod-access.ts';
import type { TemplateStatus } from '../../../../src/api/access/status.ts';
import { apiServices } from '../../../../src/api/resources.ts';
import { pluck } from '../../../support/pluck.ts';
import { LifecycleStage } from '../lifecycle/lifecycle-stage.ts';

const gateway = { name: 'v1alpha1.gateway.drawbridge.dev' };

describe('a template whose sessions pass through the gateway', () => {
  let stage: LifecycleStage;
  beforeEach(() => {
    stage = new LifecycleStage();
    stage.configure({ session: { via: 'Gateway' } });
  });
  afterEach(() => stage.stop());

  const status = (): TemplateStatus => {
    const found = stage.cluster.find(podAccessTemplates, { namespace: 'payments', name: 'payments-shell' });
    return found?.status as TemplateStatus;
  };
  const condition = (type = 'GatewayAvailable') => status().conditions?.find((one) => one.type === type);

  it('is not ready without the APIService, and says what to do', async () => {
    await stage.start();
    assert.equal(status().ready, false);
    const { status: value, reason, message = '' } = condition() ?? {};
    assert.deepEqual([value, reason], ['False', 'GatewayUnavailable']);
    assert.match(
      message,
      /^APIService \S+ does not exist, .*; ask an administrator to install the gateway with the chart, .* set session\.via to Direct \(then the gateway neither records nor ends sessions\); the template becomes ready when the gateway is Available$/,
    );
    assert.equal(condition('Reconciling')?.reason, 'GatewayUnavailable', 'no edit is needed');
  });

  it('follows the APIService', async () => {
    stage.gatewayIs('False', 'MissingEndpoints');
    await stage.start();
    assert.equal(status().ready, false);
    assert.match(condition()?.message ?? '', /is not Available \(MissingEndpoints\).*kubectl describe apiservice/);
    stage.gatewayIs('True');
    await stage.pass();
    assert.deepEqual([status().ready, condition()?.status], [true, 'True']);
    stage.gatewayIs('False', 'FailedDiscoveryCheck');
    await stage.pass();
    assert.deepEqual([status().ready, condition()?.reason], [false, 'GatewayUnavailable']);
    stage.cluster.drop(apiServices, gateway);
    await stage.pass();
    assert.match(condition()?.message ?? '', /does not exist/);
  });

  it('lets the server deny a request meanwhile, with the cause', async () => {
    await stage.start();
    await stage.asked();
    assert.deepEqual(pluck(stage.lines, 'verdict', 'code'), [['denied', 'TemplateNotReady']]);
    assert.match(stage.lines[0]?.message ?? '', /APIService v1alpha1\.gateway\.drawbridge\.dev does not exist/);
  });

  it('opens an approved request once the gateway is available', async () => {
    stage.letApprove('bob');
    stage.configure({ approvals: { all: [{ name: 'peer', count: 1 }] } });
    await stage.start();
    await stage.asked();
    await stage.voted('bob');
    assert.equal(stage.isOpen, false);
    stage.gatewayIs('True');
    await stage.pass();
    assert.equal(stage.isOpen, true);
    assert.equal(stage.status.grant?.session?.via, 'Gateway');
  });

  it('keeps open grants while the gateway is away', async () => {
    stage.gatewayIs('True');
    await stage.start();
    await stage.asked();
    stage.gatewayIs('False');
    await stage.pass(5000);
    assert.equal(stage.isOpen, true);
    assert.equal(stage.cluster.names(podAccessRequests).length, 1);
  });

  it('needs no gateway, and has no such condition, once its sessions are direct', async () => {
    await stage.start();
    await stage.configured({ session: { via: 'Direct' } });
    assert.deepEqual([status().ready, condition()], [true, undefined]);
  });

  it('writes nothing for direct templates when the gateway comes or goes', async () => {
    stage.configure({ session: { via: 'Direct' } });
    await stage.start();
    stage.cluster.calls.length = 0;
    stage.gatewayIs('True');
    await stage.pass();
    stage.cluster.drop(apiServices, gateway);
    await stage.pass();
    assert.deepEqual(stage.cluster.calls, []);
  });
});
