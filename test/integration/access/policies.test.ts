import assert from 'node:assert/strict';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import { until } from '../../../sandbox/wait.ts';
import { planHashAnnotation, requestLabel, revokeFinalizer } from '../../../src/api/access/names.ts';
import type { RequestStatus } from '../../../src/api/access/status.ts';
import { role } from '../../support/access-manifests.ts';
import { execRequest, type Manifest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { runAsReader, scriptOf } from '../../support/page-commands.ts';
import { Person } from '../../support/person.ts';
import { accountUser, childMetadata, podWith } from '../../support/server-token.ts';
import { shown } from '../../support/shown-output.ts';

const rbac = '/apis/rbac.authorization.k8s.io/v1';

describe('without the server and the webhooks, the API server', () => {
  let stage: AccessStage;
  /** A user with every permission in the namespace, and none on cluster-scoped resources. */
  let eve: Person;
  /** A client with the identity of the server. */
  let holder: Person;
  let pod: StoredRequest;
  let child: string;
  /** A request without a grant that has ended. */
  let refused: StoredRequest;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    await stage.policiesAre('in force');
    eve = await Person.of(stage.plane, 'eve', ['editors']);
    holder = await accountUser(stage.plane, 'drawbridge');
    await stage.apply(everythingButFinalizers);
    await stage.kubectl('create', 'rolebinding', 'eve', '--role=everything', '--user=eve');
    // Includes permissions that the server does not have.
    await stage.kubectl('create', 'role', 'sees', '--verb=get', '--resource=pods');
    await stage.kubectl('create', 'rolebinding', 'sees', '--role=sees', '--user=eve');
    const whole = await stage.createReady(stage.alice, execRequest('whole', { duration: '10m' }));
    await stage.alice.call('DELETE', stage.urlOf(whole.kind, 'whole'));
    await stage.gone(whole);
    pod = await stage.createReady(stage.alice, podRequest('own', { duration: '10m' }));
    child = pod.status?.podName ?? '';
    refused = await stage.requestUntil(
      'to be denied',
      await stage.createOk(stage.alice, execRequest('refused', { targetPod: 'nobody', duration: '10m' })),
      ({ status }) => (status as RequestStatus | undefined)?.ended !== undefined,
    );
    await stage.server.kill();
    await stage.removeWebhooksOnly();
  });
  after(async () => {
    if (!stage) return;
    stage.ignoreEarlierCalls();
    await stage.start();
    await stage.close();
  });

  const url = (plural: string, name = '', namespace = stage.namespace): string => {
    const prefix = plural.startsWith('pods') ? '/api/v1' : rbac;
    const [resource, subresource] = plural.split('/');
    const path = [`${prefix}/namespaces/${namespace}/${resource}`, name, subresource];
    return path.filter((part) => part !== '' && part !== undefined).join('/');
  };

  const assertRefused = ({ status, body }: ApiAnswer, code: string): void => {
    assert.equal(status, 403, JSON.stringify(body));
    const { message } = body as { message: string };
    assert.ok(message.includes(code), message);
    assert.match(message, /ValidatingAdmissionPolicy/);
  };
  const assertOk = ({ status, body }: ApiAnswer): void => assert.ok(status < 300, `${status} ${JSON.stringify(body)}`);

  const own = { username: 'alice', uid: '', groups: ['devs', 'system:authenticated'], time: '2026-11-21T09:00:00Z' };
  const attested = (name: string, requester: object = {}): Manifest =>
    withMetadata(podRequest(name, { requester: { ...own, ...requester } }), { finalizers: [revokeFinalizer] });
  const withMetadata = (manifest: Manifest, metadata: object): Manifest => ({
    ...manifest,
    metadata: { ...manifest.metadata, ...metadata },
  });
  const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'mine', uid: '7f0c1a52-3b77-4d5e-8b52-0d3a2f0e9c11' };

  describe('denies a request', () => {
    const creations: [string, Manifest, string][] = [
      ['without a requester', podRequest('bare'), 'MissingIdentity'],
      ['in the name of another user', attested('other', { username: 'bob' }), 'IdentityForged'],
      ['with groups that the caller is not in', attested('risen', { groups: ['admins'] }), 'IdentityForged'],
      ['with the uid of another user', attested('uid', { uid: 'u-1' }), 'IdentityForged'],
      [
        'with a foreign finalizer',
        withMetadata(attested('held'), { finalizers: ['a.b/c', revokeFinalizer] }),
        'ForeignHold',
      ],
      ['with an owner', withMetadata(attested('owned'), { ownerReferences: [owner] }), 'ForeignHold'],
    ];
    for (const [title, manifest, code] of creations) {
      it(title, async () => assertRefused(await stage.create(stage.alice, manifest), code));
    }

    it('with a grant from another client in its status', async () => {
      const patch = { status: { podName: 'other', ready: false } };
      assertRefused(await eve.call('PATCH', `${stage.urlOf(pod.kind, 'own')}/status`, patch), 'StatusReserved');
      assertRefused(await stage.plane.call('PATCH', `${stage.urlOf(pod.kind, 'own')}/status`, patch), 'StatusReserved');
    });

    it('with a grant in its status although it ended, by the server, too', async () => {
      const { metadata, kind } = refused;
      const patch = { status: { grant: pod.status?.grant } };
      assertRefused(
        await holder.call('PATCH', `${stage.urlOf(kind, metadata.name)}/status`, patch),
        'StatusReserved: a request that ended gets no grant',
      );
      assertOk(await holder.call('PATCH', `${stage.urlOf(kind, metadata.name)}/status`, { status: { ready: false } }));
    });

    it('that loses the server’s finalizer', async () =>
      assertRefused(
        await eve.call('PATCH', stage.urlOf(pod.kind, 'own'), { metadata: { finalizers: null } }),
        'FinalizerKept',
      ));
  });

  it('denies a template with a status from any client but the server', async () => {
    const status = `${stage.urlOf('PodAccessTemplate', 'payments-shell')}/status`;
    assertRefused(await eve.call('PATCH', status, { status: { ready: false } }), 'StatusReserved');
  });

  describe('denies in the namespace of the server a ConfigMap', () => {
    const configMaps = '/api/v1/namespaces/drawbridge-system/configmaps';
    const named = (name: string): object => ({ metadata: { name } });

    it('with the reviews that emergencies owe, from any client but the server', async () => {
      const reviews = named('drawbridge-emergency-reviews');
      assertRefused(await stage.plane.call('POST', `${configMaps}?dryRun=All`, reviews), 'StatusReserved');
      assertOk(await stage.plane.call('POST', `${configMaps}?dryRun=All`, named('other')));
    });

    it('with the name of the probe, from any client', async () => {
      const answer = await stage.plane.call('POST', `${configMaps}?dryRun=All`, named('drawbridge-probe'));
      assertRefused(answer, 'ProbeOnly');
      const elsewhere = `/api/v1/namespaces/${stage.namespace}/configmaps?dryRun=All`;
      assertOk(await stage.plane.call('POST', elsewhere, named('drawbridge-probe')));
    });
  });

  describe('denies an object of a request', () => {
    const metadata = { name: 'made-1a2b3c4d-access', labels: { [requestLabel]: 'made' } };
    const forgeries: [string, object][] = [
      ['pods', { metadata, spec: { containers: [{ name: 'app', image: 'evil:1' }] } }],
      ['roles', { metadata, rules: [] }],
      [
        'rolebindings',
        { metadata, roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'everything' } },
      ],
    ];
    for (const [plural, forgery] of forgeries) {
      it(`from another client: ${plural}`, async () => {
        assertRefused(await eve.call('POST', url(plural), forgery), 'ReservedLabel');
        assertRefused(await stage.plane.call('POST', url(plural), forgery), 'ReservedLabel');
      });
    }

    it('that another client makes of an existing object', async () =>
      assertRefused(
        await eve.call('PATCH', url('roles', 'everything'), { metadata: { labels: { [requestLabel]: 'x' } } }),
        'ReservedLabel',
      ));

    it('that another client makes of a Pod by a Binding, whose labels Kubernetes adds to the Pod', async () => {
      const binding = { metadata: { ...metadata, name: 'unscheduled' }, target: { kind: 'Node', name: 'node-1' } };
      const pod = {
        metadata: { name: 'unscheduled' },
        spec: { schedulerName: 'none', containers: [{ name: 'app', image: 'busybox:1.37' }] },
      };
      assert.equal((await stage.plane.call('POST', url('pods'), pod)).status, 201);
      assertRefused(await stage.plane.call('POST', url('pods/binding', 'unscheduled'), binding), 'ReservedLabel');
      assertRefused(
        await stage.plane.call('POST', `/api/v1/namespaces/${stage.namespace}/bindings`, binding),
        'ReservedLabel',
      );
    });

    const marks: [string, object, string][] = [
      ['the loss of its label', { labels: { [requestLabel]: null } }, 'GrantKept'],
      ['another label', { labels: { [requestLabel]: 'other' } }, 'GrantKept'],
      ['another plan hash', { annotations: { [planHashAnnotation]: 'c0ffee' } }, 'GrantKept'],
      ['the loss of its owner', { ownerReferences: null }, 'GrantKept'],
      ['a finalizer', { finalizers: ['example.com/hold'] }, 'ForeignHold'],
      ['the finalizer of the garbage collector, by hand', { finalizers: ['foregroundDeletion'] }, 'ForeignHold'],
    ];
    for (const [title, change, code] of marks) {
      it(title, async () => {
        for (const plural of ['pods', 'roles', 'rolebindings']) {
          assertRefused(await eve.call('PATCH', url(plural, child), { metadata: change }), code);
        }
        if (code === 'GrantKept') return;
        assertRefused(await stage.plane.call('PATCH', url('pods/status', child), { metadata: change }), code);
      });
    }

    it('with more permissions', async () => {
      const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }];
      assertRefused(await eve.call('PATCH', url('roles', child), { rules }), 'GrantKept');
    });

    it('with other subjects', async () => {
      const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'eve' }];
      assertRefused(await eve.call('PATCH', url('rolebindings', child), { subjects }), 'GrantKept');
    });

    it('with another image', async () => {
      const now = (await stage.plane.call('GET', url('pods', child))).body as { spec: { containers: object[] } };
      const containers = now.spec.containers.map((container) => ({ ...container, image: 'evil:1' }));
      assertRefused(await eve.call('PATCH', url('pods', child), { spec: { containers } }), 'GrantKept');
    });

    it('with more CPU than the template allows', async () => {
      const having = (cpu: string): object => ({ resources: { limits: { cpu }, requests: { cpu } } });
      // The nodes of the sandbox cannot resize containers.
      const waiting = podWith({ schedulerName: 'none' }, having('1'), childMetadata('waiting-access', pod.metadata));
      const { body, status } = await holder.call('POST', url('pods'), waiting);
      assert.equal(status, 201, JSON.stringify(body));
      const { name } = waiting.metadata as { name: string };
      const containers = [{ ...waiting.spec.containers[0], ...having('64') }];
      assertRefused(await eve.call('PATCH', url('pods/resize', name), { spec: { containers } }), 'GrantKept');
      await stage.plane.call('DELETE', url('pods', name));
    });

    it('with an added privileged container', async () => {
      const debugger_ = { name: 'debug', image: 'sh:1', securityContext: { privileged: true } };
      const change = { spec: { ephemeralContainers: [debugger_] } };
      assertRefused(await eve.call('PATCH', url('pods/ephemeralcontainers', child), change), 'PodReachesTooFar');
    });
  });

  describe('restricts clients with the server’s token to the calls of the server:', () => {
    const dryRun = '?dryRun=All';
    const create = (plural: string, object: object, namespace = stage.namespace): Promise<ApiAnswer> =>
      holder.call('POST', `${url(plural, '', namespace)}${dryRun}`, object);
    const { labels, annotations, ownerReferences } = childMetadata();
    const rule = { apiGroups: [''], resources: ['pods'], verbs: ['get'], resourceNames: ['a'] };
    const roleRefTo = (name: string, kind = 'Role') => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name });

    const unmarked: [string, object][] = [
      ['without label, annotations, and owner', { name: 'x' }],
      ['without its label', { name: 'x', annotations, ownerReferences }],
      ['with another label than its owner has', { ...childMetadata(), labels: { [requestLabel]: 'other' } }],
      ['without its owner', { name: 'x', labels, annotations }],
      [
        'with another owner',
        { ...childMetadata(), ownerReferences: [{ ...owner, uid: ownerReferences[0]?.uid, controller: true }] },
      ],
    ];
    for (const [title, metadata] of unmarked) {
      it(`creates nothing ${title}`, async () => {
        assertRefused(await create('pods', podWith({}, {}, metadata)), 'TokenMisused');
        assertRefused(await create('roles', { metadata, rules: [] }), 'TokenMisused');
        assertRefused(await create('rolebindings', { metadata, roleRef: roleRefTo(child) }), 'TokenMisused');
      });
    }

    for (const namespace of ['kube-system', 'drawbridge-system']) {
      it(`creates nothing in ${namespace}`, async () => {
        const metadata = childMetadata();
        const { name } = metadata;
        assertRefused(await create('pods', podWith({ serviceAccountName: 'default' }), namespace), 'NamespaceClosed');
        assertRefused(await create('roles', { metadata, rules: [] }, namespace), 'NamespaceClosed');
        await stage.plane.call('POST', url('roles', '', namespace), { metadata: { name }, rules: [rule] });
        assertRefused(
          await create('rolebindings', { metadata, roleRef: roleRefTo(name) }, namespace),
          'NamespaceClosed',
        );
        await stage.plane.call('DELETE', url('roles', name, namespace));
      });
    }

    const noAppArmor = { 'container.apparmor.security.beta.kubernetes.io/app': 'unconfined' };
    const hostProcess = {
      securityContext: { windowsOptions: { hostProcess: true, runAsUserName: 'NT AUTHORITY\\SYSTEM' } },
    };
    const inContext = (securityContext: object): object => podWith({}, { securityContext });
    const inPodContext = (securityContext: object): object => podWith({ securityContext });
    const elsewhere = { port: 80, host: '10.0.0.1' };
    const reaching: [string, object][] = [
      ['the network of its node', podWith({ hostNetwork: true })],
      ['the processes of its node', podWith({ hostPID: true })],
      ['the memory of its node', podWith({ hostIPC: true })],
      ['a path of its node', podWith({ volumes: [{ name: 'root', hostPath: { path: '/' } }] })],
      ['a port of its node', podWith({}, { ports: [{ containerPort: 80, hostPort: 80 }] })],
      ['privilege', inContext({ privileged: true })],
      [
        'privilege at its start',
        podWith({ initContainers: [{ name: 'i', image: 'i:1', securityContext: { privileged: true } }] }),
      ],
      ['a capability', inContext({ capabilities: { add: ['CHOWN', 'NET_RAW'] } })],
      ['an unmasked /proc', podWith({ hostUsers: false }, { securityContext: { procMount: 'Unmasked' } })],
      ['a sysctl of its node', inPodContext({ sysctls: [{ name: 'kernel.msgmax', value: '1' }] })],
      ['a process of its node', podWith({ hostNetwork: true, ...hostProcess })],
      ['no seccomp', inPodContext({ seccompProfile: { type: 'Unconfined' } })],
      ['no seccomp in a container', inContext({ seccompProfile: { type: 'Unconfined' } })],
      ['no AppArmor', inContext({ appArmorProfile: { type: 'Unconfined' } })],
      [
        'no AppArmor by annotation',
        podWith({}, {}, { ...childMetadata(), annotations: { ...annotations, ...noAppArmor } }),
      ],
      ['another SELinux type', inContext({ seLinuxOptions: { type: 'spc_t' } })],
      ['another SELinux user', inPodContext({ seLinuxOptions: { user: 'root' } })],
      ['another SELinux role', inContext({ seLinuxOptions: { role: 'sysadm_r' } })],
      ['a probe of another host', podWith({}, { livenessProbe: { httpGet: elsewhere } })],
      ['a connection to another host', podWith({}, { readinessProbe: { tcpSocket: elsewhere } })],
      ['a start at another host', podWith({}, { startupProbe: { httpGet: elsewhere } })],
      ['a hook at another host', podWith({}, { lifecycle: { preStop: { httpGet: elsewhere } } })],
      ['a first hook at another host', podWith({}, { lifecycle: { postStart: { httpGet: elsewhere } } })],
    ];
    for (const [title, manifest] of reaching) {
      it(`creates no pod with ${title}`, async () => assertRefused(await create('pods', manifest), 'PodReachesTooFar'));
    }

    it('creates pods that the baseline level allows', async () => {
      const securityContext = {
        capabilities: { add: ['CHOWN'], drop: ['ALL'] },
        procMount: 'Default',
        seccompProfile: { type: 'RuntimeDefault' },
        seLinuxOptions: { type: 'container_t', level: 's0' },
      };
      const probe = { httpGet: { port: 80, path: '/' } };
      const near = podWith(
        { securityContext: { sysctls: [{ name: 'net.ipv4.tcp_syncookies', value: '1' }] } },
        { securityContext, livenessProbe: probe, lifecycle: { preStop: probe }, ports: [{ containerPort: 80 }] },
      );
      assertOk(await create('pods', near));
      assertOk(await create('pods', podWith()));
    });

    it('creates pods beyond that level if the namespace has the label for it', async () => {
      await stage.plane.call('POST', '/api/v1/namespaces', {
        metadata: { name: `${stage.namespace}-open`, labels: { 'access.drawbridge.dev/allow-privileged': 'true' } },
      });
      await until(
        'the default ServiceAccount',
        async () => (await create('pods', podWith({ hostPID: true }), `${stage.namespace}-open`)).status === 201,
        { timeoutMs: 30_000, everyMs: 100 },
      );
      await stage.plane.call('DELETE', `/api/v1/namespaces/${stage.namespace}-open`);
    });

    const metadata = childMetadata();
    const wide: [string, object][] = [
      ['all pods', { ...rule, resourceNames: [] }],
      ['two pods', { ...rule, resourceNames: ['a', 'b'] }],
      [
        'Roles',
        { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'], verbs: ['get'], resourceNames: ['a'] },
      ],
      [
        'another grant by the gateway',
        { apiGroups: ['gateway.drawbridge.dev'], resources: ['grants/proxy'], verbs: ['get'], resourceNames: ['a'] },
      ],
    ];
    for (const [title, granted] of wide) {
      it(`creates no Role on ${title}`, async () =>
        assertRefused(await create('roles', { metadata, rules: [rule, granted] }), 'TokenMisused'));
    }

    it('creates no RoleBinding except to the Role of the grant', async () => {
      const own = 'drawbridge-grants';
      const bindings = [
        { metadata, roleRef: roleRefTo(child) },
        { metadata: childMetadata(own), roleRef: roleRefTo(own, 'ClusterRole') },
      ];
      for (const binding of bindings) assertRefused(await create('rolebindings', binding), 'TokenMisused');
    });

    it('creates the objects of a grant', async () => {
      assertOk(await create('roles', { metadata, rules: [rule] }));
    });

    it('deletes only objects of requests', async () => {
      const { body } = await stage.plane.call('GET', `${url('pods')}?labelSelector=app%3Dpayments`);
      const [foreign] = (body as { items: StoredRequest[] }).items;
      const targets: [string, string][] = [
        ['pods', foreign?.metadata.name ?? ''],
        ['roles', 'everything'],
        ['rolebindings', 'sees'],
      ];
      for (const [plural, name] of targets) {
        assertRefused(await holder.call('DELETE', `${url(plural, name)}${dryRun}`), 'TokenMisused');
        assertOk(await holder.call('DELETE', `${url(plural, child)}${dryRun}`));
      }
    });

    it('changes only its own RoleBindings, and only to remove all subjects', async () => {
      const patch = (name: string, change: object): Promise<ApiAnswer> =>
        holder.call('PATCH', `${url('rolebindings', name)}${dryRun}`, change);
      const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'mallory' }];
      assertRefused(await patch('sees', { subjects: null }), 'TokenMisused');
      assertRefused(await patch(child, { subjects }), 'GrantKept');
      assertOk(await patch(child, { subjects: null }));
    });

    it('enters no pod', async () => {
      const exec = `${url('pods/exec', child)}?command=true&stdout=true`;
      assertRefused(await holder.call('POST', exec), 'TokenMisused');
    });
  });

  describe('allows', () => {
    it('a request in the name of its creator, with the finalizer of the webhook', async () =>
      assertOk(await stage.create(stage.alice, attested('judged'), '?dryRun=All')));

    it('foreign labels and annotations', async () => {
      const metadata = { labels: { team: 'payments' }, annotations: { 'example.com/seen': 'yes' } };
      assertOk(await eve.call('PATCH', stage.urlOf(pod.kind, 'own'), { metadata }));
      for (const plural of ['pods', 'roles', 'rolebindings']) {
        assertOk(await eve.call('PATCH', url(plural, child), { metadata }));
      }
    });

    it('valid templates', async () => {
      const metadata = { annotations: { 'example.com/seen': 'yes' } };
      assertOk(await eve.call('PATCH', stage.urlOf('PodAccessTemplate', 'payments-shell'), { metadata }));
    });

    it('a template of 90,000 characters and ten extensions, within the budget of its expressions', async () => {
      const env = Array.from({ length: 900 }, (_, index) => ({ name: `NAME_${index}`, value: 'x'.repeat(100) }));
      const author = { username: 'eve', uid: '', groups: ['editors', 'system:authenticated'], time: own.time };
      const spec = {
        accessConfig: { allowedGroups: ['devs'] },
        podSpec: { containers: [{ name: 'sh', image: 'sh:1', env }] },
        author,
      };
      const kind = 'PodAccessTemplate';
      const large = { apiVersion: 'crds.wizardofoz.co/v1alpha1', kind, metadata: { name: 'large' }, spec };
      assertOk(await eve.call('POST', stage.urlOf(kind), large));
      assertOk(await eve.call('PATCH', stage.urlOf(kind, 'large'), { spec: { maxCpu: '1' } }));
      assertOk(await eve.call('PATCH', stage.urlOf(kind, 'large'), { metadata: { labels: { team: 'payments' } } }));
      const extensions = Array.from({ length: 10 }, () => ({ by: '1m', reason: 'y'.repeat(1000) }));
      const url = `${stage.urlOf(pod.kind, 'own')}?dryRun=All`;
      assertOk(await stage.alice.call('PATCH', url, { spec: { extensions } }));
    });

    it('foreign pods and roles', async () => {
      await stage.kubectl('rollout', 'restart', 'deployment/payments');
      await stage.kubectl('rollout', 'status', 'deployment/payments', '--timeout=30s');
      await stage.kubectl('create', 'role', 'reader', '--verb=get', '--resource=pods');
    });

    it('revocation by the requester', async () =>
      assertOk(await eve.call('PATCH', stage.urlOf(pod.kind, 'own'), { spec: { revoked: true } })));

    const deletes: [string, string, string[] | undefined][] = [
      ['rolebindings', 'Background', undefined],
      ['roles', 'Foreground', ['foregroundDeletion']],
      ['pods', 'Orphan', ['orphan']],
    ];
    for (const [plural, propagation, finalizers] of deletes) {
      it(`deletes of ${plural} with ${propagation}, which the garbage collector completes`, async () => {
        const answer = await eve.call('DELETE', `${url(plural, child)}?propagationPolicy=${propagation}`);
        assertOk(answer);
        assert.deepEqual((answer.body as { metadata: { finalizers?: string[] } }).metadata.finalizers, finalizers);
        const isGone = async (): Promise<boolean> => (await stage.plane.probe(url(plural, child))).status === 404;
        await until('it to be gone', isGone, { timeoutMs: 30_000, everyMs: 100 });
      });
    }

    it('deletes of requests', async () => {
      assertOk(await eve.call('DELETE', stage.urlOf(pod.kind, 'own')));
      assertRefused(
        await eve.call('PATCH', stage.urlOf(pod.kind, 'own'), { metadata: { finalizers: null } }),
        'FinalizerKept',
      );
    });

    it('the removal of the finalizer by an administrator, as troubleshoot-access.md says', async () => {
      const script = scriptOf('docs/tasks/troubleshoot-access.md', '/metadata/finalizers')
        .replace('NAMESPACE', stage.namespace)
        .replace('NAME', 'own');
      const patched = await runAsReader({ plane: stage.plane, folder: stage.plane.directory }, script);
      assert.match(patched, shown('tasks/troubleshoot-access.md', 'patched'));
      assert.equal(await stage.read(pod.kind, 'own'), undefined);
    });
  });

  it('reports no warning about the policies themselves', async () => {
    const names = ['webhooks', 'access', 'server', 'baseline', 'children'].map((name) => `drawbridge-${name}`);
    const json = await stage.kubectl('get', 'validatingadmissionpolicies', ...names, '-o', 'json');
    const { items } = JSON.parse(json) as { items: { status: { typeChecking?: object } }[] };
    assert.equal(items.length, names.length);
    for (const { status } of items) assert.deepEqual(status.typeChecking, {});
  });
});

const everythingButFinalizers = role(
  'everything',
  {
    apiGroups: ['crds.wizardofoz.co'],
    resources: ['podaccessrequests', 'podaccessrequests/status', 'podaccesstemplates', 'podaccesstemplates/status'],
    verbs: ['*'],
  },
  { apiGroups: [''], resources: ['pods', 'pods/resize', 'pods/ephemeralcontainers'], verbs: ['*'] },
  {
    apiGroups: ['rbac.authorization.k8s.io'],
    resources: ['roles', 'rolebindings'],
    verbs: ['*', 'escalate', 'bind'],
  },
);
