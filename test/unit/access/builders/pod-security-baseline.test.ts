import assert from 'node:assert/strict';
import { podReachViolations } from '../../../../src/access/builders/pod-security-baseline.ts';
import type { JsonObject } from '../../../../src/kit/json-value.ts';

const source = { serviceAccountName: 'web', nodeName: 'node-1', containers: [{ name: 'app' }] };

function violationsOf(spec: object, metadata: object = {}) {
  const whole = { ...structuredClone(source), ...spec };
  return podReachViolations({ metadata: metadata as JsonObject, spec: whole }, source, 'web');
}
const check = (spec: object, metadata?: object): string | undefined => violationsOf(spec, metadata)[0]?.message;
const container = (securityContext: object): object => ({
  containers: [{ name: 'app' }, { name: 'b', securityContext }],
});
const pod = (securityContext: object): object => ({ securityContext });

/** Fields with handlers that the kubelet calls, and a container with such a handler. */
const handlers: readonly (readonly [string, (handler: object) => object])[] = [
  ...['livenessProbe', 'readinessProbe', 'startupProbe'].map(
    (field) => [field, (handler: object) => ({ name: 'b', [field]: handler })] as const,
  ),
  ...['postStart', 'preStop'].map(
    (hook) => [`lifecycle.${hook}`, (handler: object) => ({ name: 'b', lifecycle: { [hook]: handler } })] as const,
  ),
];

describe('the reach of an access pod', () => {
  const tooFar: [string, object, RegExp][] = [
    ['the network of the node', { hostNetwork: true }, /^spec\.hostNetwork of .* is set; remove it in patch/],
    ['the processes of the node', { hostPID: true }, /^spec\.hostPID/],
    ['the memory of the node', { hostIPC: true }, /^spec\.hostIPC/],
    ['another node', { nodeName: 'node-2' }, /^spec\.nodeName/],
    ['another ServiceAccount', { serviceAccountName: 'admin' }, /is "admin", not "web"/],
    ['no ServiceAccount, which is another', { serviceAccountName: '' }, /is "default", not "web"/],
    [
      'a path of the node',
      { volumes: [{ name: 'a' }, { hostPath: {} }] },
      /^spec\.volumes\[1\]\.hostPath of .* mounts a path/,
    ],
    ['a port of the node', { initContainers: [{ ports: [{ hostPort: 1 }] }] }, /^spec\.initContainers\[0\]\.ports/],
    ...handlers.flatMap(([field, wrap]): [string, object, RegExp][] =>
      (['httpGet', 'tcpSocket'] as const).map((action) => [
        `a call of the kubelet to another address by the ${action} of ${field}`,
        { containers: [{ name: 'app' }, wrap({ [action]: { host: '169.254.169.254', port: 80 } })] },
        new RegExp(`^spec\\.containers\\[1\\]\\.${field.replace('.', '\\.')}\\.${action}\\.host .* is "169`),
      ]),
    ),
    [
      'a call of the kubelet by an init container',
      { initContainers: [{ livenessProbe: { tcpSocket: { host: 'db' } } }] },
      /^spec\.initContainers\[0\]\.livenessProbe/,
    ],
    ['a privileged container', container({ privileged: true }), /^spec\.containers\[1\]\.securityContext\.privileged/],
    ['a capability', container({ capabilities: { add: ['CHOWN', 'NET_RAW'] } }), /adds "NET_RAW"/],
    ['all capabilities', container({ capabilities: { add: ['ALL'] } }), /adds "ALL"/],
    ['an unmasked /proc', container({ procMount: 'Unmasked' }), /procMount of the access pod is "Unmasked"/],
    ['a sysctl of the node', pod({ sysctls: [{ name: 'kernel.msgmax', value: '1' }] }), /sets "kernel\.msgmax"/],
    ['a process of the node', pod({ windowsOptions: { hostProcess: true } }), /hostProcess/],
    ['a process of the node in a container', container({ windowsOptions: { hostProcess: true } }), /1.*hostProcess/],
    ['no seccomp', pod({ seccompProfile: { type: 'Unconfined' } }), /seccompProfile of the access pod is "Unconfined"/],
    ['no AppArmor', container({ appArmorProfile: { type: 'Unconfined' } }), /appArmorProfile/],
    ['another SELinux type', container({ seLinuxOptions: { type: 'spc_t' } }), /seLinuxOptions/],
    ['another SELinux user', pod({ seLinuxOptions: { user: 'root' } }), /seLinuxOptions/],
  ];
  for (const [title, spec, message] of tooFar) {
    it(`excludes ${title}`, () => assert.match(check(spec) ?? '', message));
  }

  it('excludes an annotation that disables AppArmor', () => {
    const annotations = { 'container.apparmor.security.beta.kubernetes.io/app': 'unconfined' };
    assert.match(check({}, { annotations }) ?? '', /^metadata\.annotations/);
  });

  it('names the way to allow more', () =>
    assert.match(
      check({ hostPID: true }) ?? '',
      /allow-privileged on the template to set spec\.allowPrivilegedPod; the Namespace then needs the label access\.drawbridge\.dev\/allow-privileged=true$/,
    ));

  for (const [field, value] of [
    ['serviceAccountName', 'admin'],
    ['nodeName', 'node-2'],
  ] as const) {
    it(`asks for no label of the Namespace for ${field}, which the baseline level allows`, () =>
      assert.match(
        check({ [field]: value }) ?? '',
        /ask an administrator with the verb allow-privileged on the template to set spec\.allowPrivilegedPod$/,
      ));
  }

  const near: [string, object][] = [
    ['a pod without these fields', {}],
    ['what is off', { hostNetwork: false, securityContext: { windowsOptions: { hostProcess: false } } }],
    ['the old name of its ServiceAccount', { serviceAccountName: '', serviceAccount: 'web' }],
    ['capabilities that runtimes give anyway', container({ capabilities: { add: ['CHOWN'], drop: ['ALL'] } })],
    ['a safe sysctl', pod({ sysctls: [{ name: 'net.ipv4.tcp_syncookies', value: '1' }] })],
    [
      'profiles and types of containers',
      pod({ seccompProfile: { type: 'RuntimeDefault' }, seLinuxOptions: { type: 'container_t', level: 's0' } }),
    ],
    ['the usual /proc', container({ procMount: 'Default' })],
    [
      'probes and hooks of its own',
      {
        containers: [
          {
            name: 'app',
            livenessProbe: { httpGet: { port: 80, host: '' } },
            readinessProbe: { grpc: { port: 80 } },
            lifecycle: { postStart: { exec: { command: ['true'] } }, preStop: { httpGet: { port: 80, host: null } } },
          },
        ],
      },
    ],
    ['ports of its own', { containers: [{ name: 'app', ports: [{ containerPort: 80, hostPort: 0 }] }] }],
  ];
  for (const [title, spec] of near) {
    it(`includes ${title}`, () => assert.equal(check(spec), undefined));
  }

  it('lists every excess, so that an update of a template can be compared with the stored one', () => {
    const two = [{ hostPort: 1 }, { hostPort: 2 }];
    const context = { privileged: true, capabilities: { add: ['SYS_ADMIN', 'NET_ADMIN'] }, procMount: 'Unmasked' };
    const containers = [{ ports: two, securityContext: context }, { startupProbe: { tcpSocket: { host: 'a' } } }];
    assert.deepEqual(
      violationsOf({ hostIPC: true, containers, securityContext: { sysctls: [{ name: 'a' }, { name: 'b' }] } }).map(
        ({ message }) => message.replace(/ of the access pod (.*?); .*/, ' $1'),
      ),
      [
        'spec.hostIPC is set',
        'spec.securityContext.sysctls sets "a", which is not safe',
        'spec.securityContext.sysctls sets "b", which is not safe',
        'spec.containers[0].ports takes port 1 of the node',
        'spec.containers[0].ports takes port 2 of the node',
        'spec.containers[0].securityContext.privileged is set',
        'spec.containers[0].securityContext.capabilities.add adds "SYS_ADMIN"',
        'spec.containers[0].securityContext.capabilities.add adds "NET_ADMIN"',
        'spec.containers[0].securityContext.procMount is "Unmasked", not "Default"',
        'spec.containers[1].startupProbe.tcpSocket.host is "a", not the pod itself',
      ],
    );
  });
});
