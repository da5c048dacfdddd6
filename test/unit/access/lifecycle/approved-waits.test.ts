import assert from 'node:assert/strict';
import { execAccessRequests } from '../../../../src/api/access/exec-access.ts';
import { podAccessTemplates } from '../../../../src/api/access/pod-access.ts';
import type { RequestStatus } from '../../../../src/api/access/status.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { deployments, services } from '../../../../src/api/resources.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { LifecycleStage, peer, requestName, templateName } from './lifecycle-stage.ts';

const minute = 60_000;

describe('access that others approve, while it cannot open yet', () => {
  let stage: LifecycleStage;
  /** Who holds the verb approve on the template. */
  let approvers: Set<string>;
  beforeEach(async () => {
    stage = new LifecycleStage();
    approvers = stage.letApprove('carol', 'dave');
    stage.configure({ approvals: peer });
    await stage.start();
    await stage.clock.advance(100);
  });
  afterEach(() => stage.stop());

  describe('through a template that is not ready for a while', () => {
    const workload = { namespace: 'payments', name: 'payments' };
    /** Deletes the workload of the template, or creates it again. */
    const templateIs = async (state: 'ready' | 'not ready'): Promise<void> => {
      if (state === 'not ready') {
        removed = stage.cluster.find(deployments, workload);
        stage.cluster.drop(deployments, workload);
      } else if (removed) stage.cluster.put(deployments, removed);
      await stage.pass();
    };
    let removed: KubeObject | undefined;

    it('waits, says why, and opens when the template is ready again', async () => {
      await stage.asked();
      await templateIs('not ready');
      assert.match(
        stage.approved,
        /^Unknown Pending: waiting for approvals .*; template payments-shell is not ready: /,
      );
      await stage.voted('carol');
      assert.equal(stage.isOpen, false);
      assert.match(stage.approved, /^Unknown TemplateNotReady: waiting until .*, because access cannot open yet;/);
      assert.equal(stage.status.approval?.state, 'Approved');
      let asked = 0;
      const { allows } = stage.cluster;
      stage.cluster.allows = (question) => {
        asked += question.verb === 'approve' ? 1 : 0;
        return allows(question);
      };
      await stage.pass(5 * minute);
      assert.equal(asked, 0, 'it waits for the event of the template');
      await templateIs('ready');
      assert.ok(stage.isOpen);
      assert.equal(stage.approved, 'True Success: approved by carol');
      assert.equal(stage.grantedMinutes, 10);
    });

    it('is denied by a vote all the same', async () => {
      await stage.asked();
      await templateIs('not ready');
      await stage.voted('carol', { decision: 'Deny' });
      assert.equal(stage.approved, 'False Denied: carol denied the request');
    });

    it('is denied all the same when no approval comes in time', async () => {
      await stage.asked();
      await templateIs('not ready');
      await stage.pass(61 * minute);
      assert.match(stage.approved, /^False NotApproved: /);
    });

    it('is denied ten minutes after the last time at which it could have opened', async () => {
      await stage.asked();
      await templateIs('not ready');
      stage.vote('carol');
      await stage.pass(69 * minute);
      assert.match(stage.approved, /^Unknown TemplateNotReady: /);
      await stage.pass(2 * minute);
      assert.equal(stage.condition('TargetTemplateExists')?.reason, 'TemplateNotReady');
      await templateIs('ready');
      await stage.pass();
      assert.equal(stage.isOpen, false);
    });

    it('is not denied if the author lacks a permission for a while', async () => {
      let lacks = false;
      stage.cluster.allows = ({ user, verb }) => (verb === 'approve' ? approvers.has(user) : !lacks);
      const template = stage.cluster.find(podAccessTemplates, templateName);
      assert.ok(template?.metadata.uid);
      const version = { uid: template.metadata.uid, generation: (template.metadata.generation ?? 0) + 1 };
      const author = { username: 'tina', uid: '', groups: [], time: formatTime(stage.clock.now()) };
      stage.cluster.put(podAccessTemplates, {
        ...template,
        metadata: { ...template.metadata, generation: version.generation },
        spec: { ...(template.spec as object), author },
      });
      await stage.pass();
      await stage.asked();
      lacks = true;
      await stage.pass(2 * minute);
      await stage.voted('carol');
      assert.equal(stage.isOpen, false);
      lacks = false;
      await stage.pass(2 * minute);
      assert.ok(stage.isOpen);
    });

    it('is denied at once if it waits for no one', async () => {
      await stage.configured({ approvals: undefined });
      await templateIs('not ready');
      await stage.asked();
      assert.equal(stage.condition('TargetTemplateExists')?.reason, 'TemplateNotReady');
    });
  });

  describe('while other objects forbid it', () => {
    const service = (selector: object): KubeObject =>
      ({
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'web', namespace: 'payments' },
        spec: { selector },
      }) as KubeObject;
    const everyPod = { matchedBy: 'nothing' };
    beforeEach(async () => {
      await stage.configured({}, { controllerTargetMutationConfig: { podLabels: everyPod } });
    });
    const denialOf = () =>
      stage.status.conditions
        ?.filter(({ reason }) => reason === 'PodIsSelected')
        .map(({ type, status: state }) => `${type} ${state}`);

    it('waits, says why in its condition and an Event, and opens when they no longer do', async () => {
      stage.cluster.put(services, service(everyPod));
      await stage.asked();
      await stage.voted('carol');
      assert.equal(stage.isOpen, false);
      assert.match(
        stage.approved,
        /^Unknown PodIsSelected: waiting until .*, because access cannot open yet; Service web/,
      );
      const { reason, type, note } = stage.events.at(-1) ?? {};
      assert.deepEqual([reason, type], ['PodIsSelected', 'Warning']);
      assert.match(note ?? '', /^access cannot open yet; the request waits until .*: Service web selects/);
      const events = stage.events.length;
      await stage.pass(5 * minute);
      assert.equal(stage.events.length, events, 'one Event for each cause');
      stage.cluster.drop(services, { namespace: 'payments', name: 'web' });
      await stage.pass(2 * minute);
      assert.ok(stage.isOpen);
      assert.equal(stage.approved, 'True Success: approved by carol');
      assert.equal(stage.grantedMinutes, 10);
    });

    it('is denied ten minutes after the last time at which it could have opened', async () => {
      stage.cluster.put(services, service(everyPod));
      await stage.asked();
      stage.vote('carol');
      await stage.pass(69 * minute);
      assert.match(stage.approved, /^Unknown PodIsSelected: /);
      await stage.pass(2 * minute);
      assert.deepEqual(denialOf(), ['AccessApproved False', 'AccessResourcesCreated False']);
      assert.equal(stage.status.approval?.state, 'Approved');
      stage.cluster.drop(services, { namespace: 'payments', name: 'web' });
      await stage.pass(2 * minute);
      assert.equal(stage.isOpen, false);
    });

    it('is denied at once if it waits for no one, or is an emergency', async () => {
      stage.cluster.put(services, service(everyPod));
      const emergency = { groups: ['oncall'], maxDuration: '30m', reviewWithin: '72h' };
      await stage.configured({ emergency });
      await stage.asked({ emergency: true, reason: 'INC-1 the site is down' }, { groups: ['oncall'] });
      assert.deepEqual(denialOf(), ['AccessResourcesCreated False']);
    });
  });

  describe('of a workload without a running pod', () => {
    const exec = () =>
      (stage.cluster.find(execAccessRequests, { ...requestName, name: 'look' })?.status ?? {}) as RequestStatus;
    const condition = () => {
      const found = exec().conditions?.find(({ type }) => type === 'AccessApproved');
      return found && `${found.status} ${found.reason}`;
    };
    beforeEach(async () => {
      stage.putDatabase({ start: { maxAhead: '1h' } });
      await stage.pass();
    });
    const startAt = () => formatTime(stage.clock.now() + minute);

    for (const { title, spec, code } of [
      { title: 'any pod', spec: {}, code: 'NoRunningPod' },
      { title: 'a pod that the StatefulSet replaces', spec: { targetPod: 'db-0' }, code: 'InvalidTargetPod' },
    ]) {
      it(`waits for ${title}, and opens a second after it runs`, async () => {
        stage.ask({ startAt: startAt(), ...spec }, { name: 'look', exec: true });
        await stage.pass(2 * minute);
        assert.equal(condition(), `Unknown ${code}`);
        assert.equal(stage.events.at(-1)?.reason, code);
        stage.putDatabasePod('Pending');
        await stage.pass(10_000);
        assert.equal(stage.isOpen, false);
        stage.putDatabasePod('Running');
        await stage.pass(1100);
        assert.ok(stage.isOpen);
        assert.equal(condition(), 'True Success');
      });
    }

    it('is denied at once without a start time, as in Oz', async () => {
      await stage.asked({}, { name: 'look', exec: true });
      const found = exec().conditions?.find(({ reason }) => reason === 'NoRunningPod');
      assert.equal(found?.status, 'False');
    });
  });
});
