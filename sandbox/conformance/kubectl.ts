import { spawn, spawnSync } from 'node:child_process';
import { type StreamCall, streamCall } from './stream-call.ts';

/**
 * The kubectl of `make conformance` through the gateway: obtains a grant for the Pod of each exec, attach, cp, and port-forward, and sends
 * the call through it. Every other call goes to kubectl as it is. DRAWBRIDGE_KUBECTL is the real kubectl.
 *
 * A template needs a workload, so a ReplicaSet adopts the suite's Pod by a label, and a paused Deployment adopts the ReplicaSet.
 */
const kubectl = process.env['DRAWBRIDGE_KUBECTL'] ?? 'kubectl';
const label = 'conformance.drawbridge.dev/pod';

function main(args: readonly string[]): void {
  const call = streamCall(args);
  const child = spawn(kubectl, call === undefined ? args : throughGateway(call), { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  child.once('exit', (code, signal) => process.exit(signal === null ? (code ?? 1) : 1));
}

function throughGateway(call: StreamCall): string[] {
  const path = `namespaces/${call.namespace}/grants/${grantFor(call)}/proxy`;
  return [`--server=${call.server}/apis/gateway.drawbridge.dev/v1alpha1/${path}`, ...call.rest];
}

/** Obtains a grant of ten minutes for the Pod, or finds the one of an earlier call. Returns its name. */
function grantFor({ pod, namespace }: StreamCall): string {
  run('wait', '-n', namespace, `pod/${pod}`, '--for=jsonpath={.status.phase}=Running', '--timeout=2m');
  const uid = run('get', '-n', namespace, `pod/${pod}`, '-o', 'jsonpath={.metadata.uid}');
  const request = `conformance-${uid}`;
  run('label', '-n', namespace, `pod/${pod}`, `${label}=${pod}`, '--overwrite');
  for (const object of objects(pod, namespace, request)) apply(object);
  run('wait', '-n', namespace, `execaccessrequest/${request}`, '--for=condition=Ready', '--timeout=2m');
  const role = 'jsonpath={.status.children[?(@.kind=="Role")].name}';
  return run('get', '-n', namespace, `execaccessrequest/${request}`, '-o', role);
}

function objects(pod: string, namespace: string, request: string): object[] {
  const metadata = { name: pod, namespace };
  const labels = { [label]: pod };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'none', image: 'none' }] } };
  const replicas = { replicas: 1, selector: { matchLabels: labels }, template };
  const rules = ['attach', 'portforward', 'log'].map((name) => ({
    apiGroups: [''],
    resources: [`pods/${name}`],
    verbs: name === 'log' ? ['get'] : ['get', 'create'],
  }));
  return [
    { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: { ...metadata, labels }, spec: replicas },
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { ...replicas, paused: true } },
    {
      apiVersion: 'crds.wizardofoz.co/v1alpha1',
      kind: 'ExecAccessTemplate',
      metadata,
      spec: {
        accessConfig: {
          // The caller needs no group: an administrator holds what the template grants.
          allowedGroups: ['testers'],
          defaultDuration: '10m',
          maxDuration: '1h',
          rules,
          session: { via: 'Gateway' },
        },
        controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: pod },
      },
    },
    {
      apiVersion: 'crds.wizardofoz.co/v1alpha1',
      kind: 'ExecAccessRequest',
      metadata: { name: request, namespace },
      spec: { templateName: pod, targetPod: pod },
    },
  ];
}

function apply(object: object): void {
  const created = spawnSync(kubectl, ['create', '-f', '-'], { input: JSON.stringify(object), encoding: 'utf8' });
  if (created.status !== 0 && !created.stderr.includes('AlreadyExists')) throw new Error(created.stderr);
}

function run(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(kubectl, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout.trim();
}

main(process.argv.slice(2));
