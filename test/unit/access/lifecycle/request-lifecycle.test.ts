import assert from 'node:assert/strict';
import { podAccessRequests, podAccessTemplates } from '../../../../src/api/access/pod-access.ts';
import { deployments, pods, roleBindings, roles } from '../../../../src/api/resources.ts';
import { own } from '../../../../src/kit/json-value.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { pluck } from '../../../support/pluck.ts';
import { LifecycleStage, requestName, templateName } from './lifecycle-stage.ts';

const minute = 60_000;

describe('the lifecycle of a request', () => {
  let stage: LifecycleStage;
  beforeEach(async () => {
    stage = new LifecycleStage();
    await stage.start();
  });
  afterEach(() => stage.stop());

  /** From the creation of the request. */
  const lastsMs = (): number =>
    Date.parse(stage.status.grant?.expiresAt ?? '') - Date.parse(stage.request?.metadata.creationTimestamp ?? '');

  it('leads from its creation to Ready and to its deletion', async () => {
    await stage.granted();
    await stage.clock.advance(600_000);
    assert.deepEqual(stage.children, []);
    assert.equal(stage.request, undefined);
    assert.deepEqual(stage.auditVerdicts, ['grant granted', 'revocation revoked']);
  });

  it('ends on time if the first call fails and the API server requests a long delay', async () => {
    await stage.granted();
    await stage.stop();
    stage.cluster.drop(podAccessTemplates, templateName);
    let faults = 0;
    stage.cluster.fault = ({ verb, plural }) => {
      if (verb !== 'get' || plural !== 'podaccesstemplates') return;
      faults++;
      throw new ApiError(429, 'TooManyRequests', 'later', 3_600_000);
    };
    await stage.start();
    await stage.clock.advance(601_000);
    assert.equal(faults, 1);
    assert.deepEqual(stage.cluster.names(roleBindings), []);
  });

  describe('of ten minutes without a leader for half of them', () => {
    const lastsTenMinutes = async (): Promise<void> => {
      const { grant } = stage.status;
      assert.equal(lastsMs(), 10 * minute);
      assert.equal(grant?.startsAt, undefined);
      await stage.clock.advance(Date.parse(grant?.expiresAt ?? '') - stage.clock.now() - 1000);
      assert.equal(stage.cluster.names(roleBindings).length, 1);
      await stage.clock.advance(1100);
      assert.deepEqual(stage.children, []);
    };

    it('ends at its creation plus its duration, if it was granted before', async () => {
      await stage.granted();
      await stage.stop();
      await stage.clock.advance(5 * minute);
      await stage.start();
      await lastsTenMinutes();
    });

    it('ends at its creation plus its duration, if it is granted after', async () => {
      await stage.stop();
      stage.ask();
      await stage.clock.advance(5 * minute);
      await stage.start();
      await lastsTenMinutes();
    });
  });

  describe('for a pod that the kubelet ends before the requested time', () => {
    const patchSpecOperations = [{ op: 'add', path: '/spec/activeDeadlineSeconds', value: 60 }];
    beforeEach(async () => {
      stage.configure(
        { extension: { times: 1, total: '1h', approvals: 'None' } },
        { controllerTargetMutationConfig: { patchSpecOperations } },
      );
      await stage.pass();
    });

    it('ends with the pod, and says why', async () => {
      await stage.granted();
      assert.equal(lastsMs(), minute);
      assert.equal(
        stage.condition('AccessDurationsValid')?.message,
        '10 min, as requested; the pod ends after 1 min by its activeDeadlineSeconds',
      );
      assert.equal(stage.condition('AccessShortened')?.message, 'asked for 10 min, granted 1 min');
      await stage.pass(minute);
      assert.deepEqual(stage.children, []);
    });

    it('opens with the same plan after a restart', async () => {
      stage.cluster.fail('create', 'roles');
      await stage.asked();
      await stage.stop();
      assert.equal(stage.isOpen, false);
      stage.cluster.fault = () => {};
      await stage.start();
      await stage.pass(3000);
      assert.ok(stage.isOpen);
    });

    it('ends at the requested time if the deadline is no whole number, which the API server would reject', async () => {
      const fractional = [{ op: 'add', path: '/spec/activeDeadlineSeconds', value: 60.0005 }];
      await stage.configured({}, { controllerTargetMutationConfig: { patchSpecOperations: fractional } });
      await stage.granted();
      assert.equal(lastsMs(), 10 * minute);
      const [pod] = stage.cluster.all(pods);
      // `extension.total` of the template.
      assert.equal(own(pod?.['spec'], 'activeDeadlineSeconds'), 3600);
    });

    it('is denied with TooLate if that end has passed before access could open', async () => {
      await stage.stop();
      stage.ask();
      await stage.pass(2 * minute);
      await stage.start();
      await stage.pass();
      assert.deepEqual(stage.children, []);
      assert.equal(stage.lines.at(-1)?.code, 'TooLate');
    });
  });

  it('opens with the same plan after a failed call if its duration is no whole number of seconds', async () => {
    stage.cluster.fail('create', 'roles', { times: 1 });
    stage.ask({ duration: '90500ms' });
    await stage.pass(3000);
    assert.ok(stage.isOpen, JSON.stringify(stage.status.conditions));
  });

  it('is denied with PlanChanged, and the reason, if its workload is deleted before its Role is created', async () => {
    let faults = 1;
    stage.cluster.fault = ({ verb, plural }) => {
      if (verb !== 'create' || plural !== 'roles' || faults-- <= 0) return;
      stage.cluster.drop(deployments, { namespace: 'payments', name: 'payments' });
      throw new ApiError(500, 'InternalError', 'not now');
    };
    stage.ask();
    await stage.clock.advance(2000);
    const { reason, message } = stage.condition('AccessResourcesCreated') ?? {};
    assert.equal(reason, 'PlanChanged');
    assert.match(
      message ?? '',
      /^template payments-shell or an object .* upgraded or reconfigured; correct this, then create a new request: TargetNotFound: Deployment "payments" does not exist in /,
    );
    assert.deepEqual(stage.children, []);
  });

  it('is not ready with a foreign pod that replaced its pod before the status named it, and ends', async () => {
    const states: unknown[] = [];
    const replacePod = (): void => {
      const [pod] = stage.cluster.all(pods);
      assert.ok(pod);
      stage.cluster.drop(pods, pod.metadata);
      const { uid: _, ...metadata } = pod.metadata;
      const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
      stage.cluster.put(pods, { ...pod, metadata, status });
    };
    stage.cluster.fault = ({ verb, plural }) => {
      states.push((stage.request?.status as { ready?: boolean } | undefined)?.ready);
      if (verb === 'create' && plural === 'roles') replacePod();
    };
    stage.ask();
    await stage.clock.advance(15_000);
    assert.ok(!states.includes(true), 'its status was Ready');
    assert.deepEqual(stage.cluster.names(roleBindings), []);
    assert.equal(stage.lines.at(-1)?.code, 'TargetPodGone');
  });

  const oomKilled = { name: 'app', state: { terminated: { reason: 'OOMKilled', exitCode: 137 } } };
  const killed = { phase: 'Failed', containerStatuses: [oomKilled] };
  const why = 'Failed: container app: OOMKilled (exit code 137)';
  for (const [title, isReady, status, text] of [
    ['is killed while access opens', false, killed, why],
    ['is killed while access is open', true, killed, why],
    ['completes while access is open', true, { phase: 'Succeeded' }, 'Succeeded'],
  ] as const) {
    it(`ends and says why if its pod ${title}`, async () => {
      stage.ask();
      await stage.clock.advance(isReady ? 10 : 1500);
      if (isReady) stage.podBecomesReady();
      await stage.clock.advance(100);
      stage.podsAre(status);
      await stage.clock.advance(100);
      assert.deepEqual(stage.children, []);
      const { code, message } = stage.lines.at(-1) ?? {};
      assert.deepEqual([code, message], ['TargetPodGone', `its pod has ended: ${text}; create a new request`]);
      await stage.clock.advance(15_000);
      assert.deepEqual(stage.auditVerdicts, ['grant granted', 'revocation revoked']);
    });
  }

  it('stays open if the kubelet restarts the container of its pod', async () => {
    await stage.granted();
    stage.podsAre({ phase: 'Running', containerStatuses: [oomKilled] });
    await stage.clock.advance(1000);
    assert.equal(stage.children.length, 3);
  });

  it('reports a grant once, even after retries of its objects', async () => {
    stage.cluster.fail('create', 'roles', { times: 3 });
    stage.ask();
    await stage.clock.advance(10_000);
    assert.equal(stage.children.length, 3);
    assert.deepEqual(stage.auditVerdicts, ['grant granted']);
  });

  it('is recorded with the deciding group first, because the journal keeps only some groups', async () => {
    const others = Array.from({ length: 40 }, (_, index) => `team-${index}`);
    stage.ask({}, { groups: [...others, 'devs'] });
    await stage.clock.advance(100);
    const line = stage.lines.find(({ event, verdict }) => event === 'grant' && verdict === 'granted');
    assert.deepEqual(line?.who.groups, ['devs', ...others]);
  });

  it('ends as soon as it is revoked, with one report', async () => {
    await stage.granted();
    stage.change({ revoked: true });
    await stage.clock.advance(100);
    assert.deepEqual(stage.children, []);
    await stage.clock.advance(15_000);
    assert.equal(stage.request, undefined);
    assert.deepEqual(stage.auditVerdicts, ['grant granted', 'revocation revoked']);
    assert.equal(stage.lines[1]?.code, 'Revoked');
  });

  it('is denied if its template violates its schema, instead of waiting until its end', async () => {
    const template = stage.cluster.find(podAccessTemplates, templateName);
    assert.ok(template);
    stage.cluster.put(podAccessTemplates, { ...template, spec: { ...(template.spec as object), accessConfig: 7 } });
    stage.ask();
    await stage.clock.advance(100);
    assert.deepEqual(pluck(stage.lines, 'verdict', 'code'), [['denied', 'TemplateNotFound']]);
    assert.match(
      stage.lines[0]?.message ?? '',
      /^PodAccessTemplate payments\/payments-shell violates its schema: spec\.accessConfig must be an object; found 7; ask its author to correct it/,
    );
  });

  const kept: [string, number][] = [
    ['30s', 30],
    ['876000h', 24 * 3600],
  ];
  for (const [duration, seconds] of kept) {
    it(`is kept for ${seconds} s if it requested ${duration} and was denied`, async () => {
      stage.ask({ duration, templateName: 'no-such-template' });
      await stage.clock.advance(seconds * 1000 - 1000);
      assert.ok(stage.request);
      await stage.clock.advance(1000);
      assert.equal(stage.request, undefined);
      assert.deepEqual(stage.auditVerdicts, ['grant denied']);
    });
  }

  it('is never granted if it is created as revoked', async () => {
    stage.ask({ revoked: true });
    await stage.clock.advance(15_000);
    assert.equal(stage.request, undefined);
    assert.deepEqual(stage.auditVerdicts, []);
    assert.ok(stage.cluster.calls.every(({ verb }) => verb !== 'create'));
  });

  it('closes its objects if the request vanishes with its finalizer', async () => {
    await stage.granted();
    stage.cluster.fail('delete', 'rolebindings', { times: 1 });
    stage.cluster.drop(podAccessRequests, requestName);
    await stage.clock.advance(5_000);
    assert.deepEqual(stage.children, []);
    assert.deepEqual(stage.auditVerdicts, ['grant granted', 'revocation revoked']);
  });

  it('reports nothing for a vanished request if another leader has closed everything', async () => {
    await stage.granted();
    for (const resource of [roleBindings, roles, pods]) {
      for (const { metadata } of stage.cluster.all(resource)) stage.cluster.drop(resource, metadata);
    }
    stage.cluster.drop(podAccessRequests, requestName);
    await stage.clock.advance(5_000);
    assert.deepEqual(stage.auditVerdicts, ['grant granted']);
  });

  it('closes the objects of a request that was replaced by another of the same name', async () => {
    await stage.granted();
    stage.cluster.drop(podAccessRequests, requestName);
    stage.ask({ templateName: 'no-such-template' });
    await stage.clock.advance(1_000);
    assert.deepEqual(stage.children, []);
    assert.ok(stage.request);
  });

  it('ends at once when it is deleted, even if many others wait for the API server', async () => {
    await stage.granted();
    const answers = Promise.withResolvers<void>();
    stage.cluster.fault = ({ verb }) => (verb === 'create' ? answers.promise : undefined);
    for (let i = 0; i < 50; i++) stage.ask({}, { name: `other-${i}` });
    await stage.clock.advance(10);
    await stage.cluster.client.delete(podAccessRequests, requestName);
    await stage.clock.advance(10);
    assert.deepEqual(stage.children, []);
    answers.resolve();
  });

  const never = new Promise<void>(() => {});
  const ends: [string, () => Promise<void>][] = [
    ['its time is over', () => stage.clock.advance(600_000)],
    ['it is deleted', async () => void (await stage.cluster.client.delete(podAccessRequests, requestName))],
  ];
  for (const [what, end] of ends) {
    it(`gives no more access after ${what}, even if its status write is never answered`, async () => {
      stage.cluster.fault = ({ verb, plural }) => {
        const isOpen = stage.cluster.names(roleBindings).length > 0;
        return verb === 'patch' && plural === 'podaccessrequests' && isOpen ? never : undefined;
      };
      stage.ask();
      await stage.clock.advance(2000);
      assert.equal(stage.children.length, 3);
      await end();
      await stage.clock.advance(10);
      assert.deepEqual(stage.children, []);
    });
  }

  it('creates no RoleBinding if its deadline passes before its pod is created', async () => {
    const answer = Promise.withResolvers<void>();
    stage.cluster.fault = ({ verb, plural }) => (verb === 'create' && plural === 'pods' ? answer.promise : undefined);
    stage.ask();
    await stage.clock.advance(600_010);
    answer.resolve();
    await stage.clock.advance(1000);
    assert.deepEqual(stage.children, []);
    const made = stage.cluster.calls.filter(({ verb }) => verb === 'create').map(({ plural }) => plural);
    assert.deepEqual(made, ['pods']);
  });

  it('checks twice for a RoleBinding whose creation was in flight at the deadline', async () => {
    const landed = Promise.withResolvers<void>();
    stage.cluster.fault = ({ verb, plural }) =>
      verb === 'create' && plural === 'rolebindings' ? landed.promise : undefined;
    stage.ask();
    await stage.clock.advance(600_010);
    const looks = stage.cluster.calls.filter(({ verb, plural }) => verb === 'get' && plural === 'rolebindings');
    assert.equal(looks.length, 2);
    assert.deepEqual(stage.children, []);
  });

  it('deletes all RoleBindings before any other object if many requests end together', async () => {
    for (let i = 0; i < 40; i++) stage.ask({}, { name: `one-of-many-${i}` });
    await stage.clock.advance(10);
    assert.equal(stage.cluster.names(roleBindings).length, 40);
    await stage.clock.advance(600_000);
    assert.deepEqual(stage.children, []);
    const deletes = stage.cluster.calls.filter(({ verb }) => verb === 'delete').map(({ plural }) => plural);
    assert.deepEqual(new Set(deletes.slice(0, 40)), new Set(['rolebindings']));
  });

  it('reports its end once, even if another process releases it', async () => {
    await stage.granted();
    await stage.cluster.client.delete(podAccessRequests, requestName);
    await stage.clock.advance(1000);
    await stage.restart();
    await stage.clock.advance(12_000);
    assert.equal(stage.request, undefined);
    assert.deepEqual(stage.auditVerdicts, ['grant granted', 'revocation revoked']);
  });

  it('releases the request, and reports its end once, while the node of its pod is down', async () => {
    await stage.granted();
    stage.cluster.nodeIsDown = true;
    await stage.clock.advance(600_000);
    assert.equal(stage.request, undefined);
    const calls = stage.cluster.calls.length;
    await stage.clock.advance(300_000);
    await stage.restart();
    assert.equal(stage.cluster.names(pods).length, 1);
    assert.equal(stage.cluster.calls.length, calls);
    assert.deepEqual(stage.auditVerdicts, ['grant granted', 'revocation revoked']);
  });

  it('closes a RoleBinding and a Role with foreign finalizers once, without waiting for their deletion', async () => {
    await stage.granted();
    for (const resource of [roleBindings, roles]) {
      const [object] = stage.cluster.all(resource);
      assert.ok(object);
      stage.cluster.put(resource, { ...object, metadata: { ...object.metadata, finalizers: ['a.b/c'] } });
    }
    stage.cluster.calls.length = 0;
    await stage.clock.advance(600_000);
    assert.equal(stage.request, undefined);
    assert.equal(stage.cluster.all(roleBindings)[0]?.['subjects'], undefined);
    assert.deepEqual(
      stage.cluster.calls.map(({ verb, plural }) => `${verb} ${plural}`),
      [
        'delete rolebindings',
        'patch rolebindings',
        'delete roles',
        'delete pods',
        // The end in the status.
        'patch podaccessrequests',
        'delete podaccessrequests',
        'patch podaccessrequests',
      ],
    );
    await stage.restart();
    await stage.clock.advance(120_000);
    assert.equal(stage.cluster.calls.length, 7, 'nor does a later process begin anew');
    assert.deepEqual(stage.auditVerdicts, ['grant granted', 'revocation revoked']);
    assert.equal(await drift('RoleBinding'), 0);
  });

  const drift = async (kind: string): Promise<number> => {
    const series = `drawbridge_drift_objects{kind="${kind}",drift="orphaned"} `;
    const line = (await stage.metrics.expose()).split('\n').find((one) => one.startsWith(series));
    return Number(line?.slice(series.length));
  };
});
